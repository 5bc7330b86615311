"""Gateways and attempts put on record, as workers would leave them."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.utils import timezone

from assets_app.models import Gateway, Queue, Run, RunAttempt


def record_gateway(
    name: str, *, silent_seconds: float = 0, queue: str = "scheduled", **fields: Any
) -> Gateway:
    now = timezone.now()
    return Gateway.objects.create(
        name=name, host="here", process_id=7, queue=queue, slots=3, started_at=now,
        last_seen=now - timedelta(seconds=silent_seconds), **fields,
    )  # fmt: skip


def record_gateway_of_each_queue() -> None:
    """Record an online worker on each queue; no test takes so long that these go offline."""
    for queue in Queue:
        record_gateway(f"fine-{queue}", queue=queue, silent_seconds=-3600)


def record_attempt(gateway: Gateway, run: Run) -> None:
    now = timezone.now()
    RunAttempt.objects.create(run=run, number=1, gateway=gateway, token=uuid4(), started_at=now)
