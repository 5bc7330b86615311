"""Channels, alert rules and deliveries by the names in addresses, for pages and API."""

from uuid import UUID

from django.http import Http404

from slicewise_server.alerts.models import AlertRule, Channel, Delivery
from slicewise_server.web.storable import is_storable


def channel_named(name: str) -> Channel:
    """Return the channel; raise Http404 if there is none of this name."""
    channel = Channel.objects.filter(name=name).first() if is_storable(name) else None
    if channel is None:
        raise Http404(f"There is no channel {name!r}.")
    return channel


def rule_named(name: str) -> AlertRule:
    """Return the alert rule with its channel; raise Http404 if there is none of this name."""
    alert_rules = AlertRule.objects.select_related("channel")
    alert_rule = alert_rules.filter(name=name).first() if is_storable(name) else None
    if alert_rule is None:
        raise Http404(f"There is no alert rule {name!r}.")
    return alert_rule


def delivery_with(delivery_id: UUID) -> Delivery:
    """Return the delivery with its channel; raise Http404 if there is none with this id."""
    delivery = Delivery.objects.select_related("channel").filter(key=delivery_id).first()
    if delivery is None:
        raise Http404(f"There is no delivery {delivery_id}.")
    return delivery
