"""Metrics of gateways, slots and leases."""

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta

from django.db.models import Count
from prometheus_client.core import Metric

from assets_app.models import Gateway, Queue, RunAttempt
from assets_app.models.gateways import GatewayState
from assets_app.queries.clock import database_now
from slicewise_server.metrics.families import gauge, rows_of

# Rows of gateways stay: a container has another name after each start.
SEEN_WITHIN = timedelta(hours=1)
# Gateways with a label value of their own; the slots of all further gateways are added up.
MOST_GATEWAYS = 100
OTHER_GATEWAYS = "other"
_LEASES = """
SELECT count(*) FILTER (WHERE until >= clock_timestamp()),
       count(*) FILTER (WHERE until < clock_timestamp())
FROM assets_app_lease
"""


def collect_gateways() -> Iterable[Metric]:
    """Return the metrics of the gateways that have sent a heartbeat within the last hour."""
    now = database_now()
    gateways = list(Gateway.objects.filter(last_seen__gt=now - SEEN_WITHIN).order_by("id"))
    states = Counter({(queue, state): 0 for queue in Queue.values for state in GatewayState.values})
    states.update((gateway.queue, gateway.state_at(now).value) for gateway in gateways)
    yield gauge(
        "slicewise_gateways",
        "Gateways with a heartbeat within the last hour, by state.",
        ("queue", "state"),
        states.items(),
    )
    at_work = [gateway for gateway in gateways if gateway.state_at(now) is GatewayState.WORKING]
    names = {
        gateway.pk: gateway.name if rank < MOST_GATEWAYS else OTHER_GATEWAYS
        for rank, gateway in enumerate(at_work)
    }
    open_attempts = RunAttempt.objects.filter(ended_at__isnull=True).order_by()
    used = dict(open_attempts.values_list("gateway").annotate(Count("id")))
    slots, slots_used = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for gateway in at_work:
        slots[names[gateway.pk], gateway.queue] += gateway.slots
        slots_used[names[gateway.pk], gateway.queue] += used.get(gateway.pk, 0)
    labels = ("gateway", "queue")
    yield gauge(
        "slicewise_gateway_slots", "Slots of working gateways for runs.", labels, slots.items()
    )
    yield gauge(
        "slicewise_gateway_slots_used",
        "Slots of working gateways that have a run.",
        labels,
        slots_used.items(),
    )


def collect_leases() -> Iterable[Metric]:
    """Return the number of leases of attempts."""
    [(live, expired)] = rows_of(_LEASES)
    yield gauge(
        "slicewise_leases",
        "Leases of attempts under way; an expired lease is about to be taken over.",
        ("state",),
        [(("live",), live), (("expired",), expired)],
    )
