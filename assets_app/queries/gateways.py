"""What workers do: each with the runs on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from assets_app.models import Gateway, RunAttempt
from assets_app.models.gateways import GatewayState


@dataclass(frozen=True, slots=True)
class GatewayStanding:
    """A worker, how it stands, and the attempts that it has begun and not ended."""

    gateway: Gateway
    state: GatewayState
    attempts: Sequence[RunAttempt]

    @property
    def used(self) -> int:
        """Slots with a run on them."""
        return len(self.attempts)

    @property
    def free(self) -> int:
        """Slots for further runs: none where nothing more is taken."""
        if self.state != GatewayState.WORKING:
            return 0
        return max(self.gateway.slots - self.used, 0)


def gateway_standings(gateways: Sequence[Gateway], now: datetime) -> list[GatewayStanding]:
    """Return the status of each of the workers: one statement for all of them."""
    attempts: dict[int, list[RunAttempt]] = {}
    going_on = RunAttempt.objects.filter(ended_at__isnull=True, gateway__in=gateways)
    named = going_on.select_related("run__asset").defer("error", "traceback")
    for attempt in named.order_by("started_at", "pk"):
        if attempt.gateway_id is not None:
            attempts.setdefault(attempt.gateway_id, []).append(attempt)
    return [
        GatewayStanding(gateway, gateway.state_at(now), attempts.get(gateway.pk, []))
        for gateway in gateways
    ]
