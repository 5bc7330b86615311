"""Status of workers, each with its runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from assets_app.models import Gateway, Queue, RunAttempt
from assets_app.models.gateways import GatewayState

# Rows of workers stay: a container has another name after each start.
_NEWS = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class GatewayStatus:
    """A worker, its state, and the attempts that the worker has begun and not ended."""

    gateway: Gateway
    state: GatewayState
    attempts: Sequence[RunAttempt]

    @property
    def used(self) -> int:
        """The number of slots with a run."""
        return len(self.attempts)

    @property
    def free(self) -> int:
        """The number of slots for further runs; 0 where the worker takes no more runs."""
        if self.state != GatewayState.WORKING:
            return 0
        return max(self.gateway.slots - self.used, 0)


def gateway_statuses(gateways: Sequence[Gateway], now: datetime) -> list[GatewayStatus]:
    """Return the status of each of the workers: one statement for all of them."""
    attempts: dict[int, list[RunAttempt]] = {}
    open_attempts = RunAttempt.objects.filter(ended_at__isnull=True, gateway__in=gateways)
    attempt_rows = open_attempts.select_related("run__asset").defer("error", "traceback")
    for attempt in attempt_rows.order_by("started_at", "pk"):
        if attempt.gateway_id is not None:
            attempts.setdefault(attempt.gateway_id, []).append(attempt)
    return [
        GatewayStatus(gateway, gateway.state_at(now), attempts.get(gateway.pk, []))
        for gateway in gateways
    ]


def queues_without_worker(workers: Sequence[GatewayStatus]) -> list[Queue]:
    """Return the queues on which no worker takes runs."""
    served = {worker.gateway.queue for worker in workers if worker.state == GatewayState.WORKING}
    return [queue for queue in Queue if queue not in served]


def recently_lost(workers: Sequence[GatewayStatus], now: datetime) -> list[GatewayStatus]:
    """Return the workers that went offline within the last 24 hours."""
    lost = [worker for worker in workers if worker.state == GatewayState.LOST]
    return [worker for worker in lost if worker.gateway.last_seen > now - _NEWS]


def troubled_first(workers: Sequence[GatewayStatus], now: datetime) -> list[GatewayStatus]:
    """Return the workers: those that went offline within the last 24 hours, draining workers,
    online workers, and then workers that are no longer in use.
    """
    lost = {worker.gateway.pk for worker in recently_lost(workers, now)}
    ranks = {GatewayState.DRAINING: 1, GatewayState.WORKING: 2}

    def rank(worker: GatewayStatus) -> int:
        return 0 if worker.gateway.pk in lost else ranks.get(worker.state, 3)

    return sorted(workers, key=rank)
