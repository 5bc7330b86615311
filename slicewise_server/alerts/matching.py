"""From events to deliveries: each active rule reads the feed on from its position."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from assets_app.models import Asset
from slicewise_server.alerts.messages import message
from slicewise_server.alerts.models import AlertRule, ChannelKind, Delivery, DeliveryState
from slicewise_server.events.feed import end_of_feed, events_after
from slicewise_server.events.models import Event
from slicewise_server.events.serializers import EventSerializer
from slicewise_server.web.advisory_locks import AdvisoryLock, try_lock_until_commit

# Later tries of a delivery end a day after the event.
KEPT_FOR = timedelta(days=1)
_AT_ONCE = 2_000


def match_events(now: datetime) -> None:
    """Write deliveries for the events that have come since the last call, and close messages whose
    time of gathering is over.
    """
    with transaction.atomic():
        if not try_lock_until_commit(AdvisoryLock.ALERTS):
            return
        # Paused channels lose no event: their deliveries wait, and are given up after a day.
        behind = AlertRule.objects.filter(active=True, position__lt=end_of_feed())
        feed = FeedReader()
        for alert_rule in behind.select_related("channel").select_for_update(of=("self",)):
            _read_on(alert_rule, feed, now)
        due = Delivery.objects.filter(state=DeliveryState.GATHERING, send_at__lte=now)
        for delivery in due.select_related("rule").select_for_update(of=("self",)):
            if delivery.rule is not None:
                close_message(delivery.rule, delivery)


class FeedReader:
    """Events after a position, read once for all rules at that position."""

    def __init__(self) -> None:
        self._by_position: dict[int, list[Event]] = {}

    def after(self, position: int) -> list[Event]:
        """Return the next events after a position."""
        if position not in self._by_position:
            self._by_position[position] = list(events_after(position)[:_AT_ONCE])
        return self._by_position[position]


def _read_on(alert_rule: AlertRule, feed: FeedReader, now: datetime) -> None:
    events = feed.after(alert_rule.position)
    if not events:
        return
    wanted = list(wanted_events(alert_rule, events))
    if wanted and (alert_rule.channel.kind == ChannelKind.WEBHOOK or not alert_rule.gather_seconds):
        Delivery.objects.bulk_create(_alone(alert_rule, event, now) for event in wanted)
    elif wanted:
        _gather(alert_rule, wanted, now)
    AlertRule.objects.filter(pk=alert_rule.pk).update(position=events[-1].position)


def wanted_events(alert_rule: AlertRule, events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events that the rule is for, by the assets' present groups, tags and owners."""
    of_kind = [
        event
        for event in events
        if alert_rule.wants_kind(event.kind, of_backfill=event.backfill_id is not None)
    ]
    if alert_rule.is_for_all:
        yield from of_kind
        return
    names = {event.asset for event in of_kind}
    fields = ("group", "tags", "owners")
    assets = {
        name: dict(zip(fields, values, strict=True))
        for name, *values in Asset.objects.filter(name__in=names).values_list("name", *fields)
    }
    for event in of_kind:
        if event.asset and _names(alert_rule, event.asset, assets.get(event.asset, {})):
            yield event


def _names(alert_rule: AlertRule, name: str, asset: Mapping[str, Any]) -> bool:
    return (
        name in alert_rule.assets
        or (asset.get("group") or None) in alert_rule.groups
        or not set(alert_rule.tags).isdisjoint(asset.get("tags", ()))
        or not set(alert_rule.owners).isdisjoint(asset.get("owners", ()))
    )


def _alone(alert_rule: AlertRule, event: Event, now: datetime) -> Delivery:
    return Delivery(
        channel=alert_rule.channel,
        rule=alert_rule,
        rule_name=alert_rule.name,
        state=DeliveryState.WAITING,
        first_position=event.position,
        last_position=event.position,
        event_count=1,
        body=message([event]) | {"event": EventSerializer(event).data},
        send_at=now,
        give_up_at=now + KEPT_FOR,
    )


def _gather(alert_rule: AlertRule, events: Sequence[Event], now: datetime) -> None:
    """Add events to the open message of the rule; open a message where there is none."""
    delivery, _ = Delivery.objects.get_or_create(
        rule=alert_rule,
        state=DeliveryState.GATHERING,
        defaults={
            "channel": alert_rule.channel,
            "rule_name": alert_rule.name,
            "first_position": events[0].position,
            "send_at": now + timedelta(seconds=alert_rule.gather_seconds),
            "give_up_at": now + KEPT_FOR,
        },
    )
    delivery.last_position = events[-1].position
    delivery.event_count += len(events)
    delivery.save(update_fields=["last_position", "event_count"])


def close_message(alert_rule: AlertRule, delivery: Delivery) -> None:
    """Write the text of a message whose events are complete: from now on the message is fixed."""
    events = events_after((delivery.first_position or 1) - 1)
    events = events.filter(position__lte=delivery.last_position)
    delivery.body = message(_in_batches(alert_rule, events.iterator()))
    delivery.state = DeliveryState.WAITING
    delivery.save(update_fields=["body", "state"])


def _in_batches(alert_rule: AlertRule, events: Iterator[Event]) -> Iterator[Event]:
    batch: list[Event] = []
    for event in events:
        batch.append(event)
        if len(batch) == _AT_ONCE:
            yield from wanted_events(alert_rule, batch)
            batch = []
    yield from wanted_events(alert_rule, batch)
