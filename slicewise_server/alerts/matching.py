"""From events to deliveries: each active rule reads the feed on from its position."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.urls import reverse

from assets_app.models import Asset
from slicewise_server.alerts.messages import message, unlisted_message
from slicewise_server.alerts.models import AlertRule, ChannelKind, Delivery, DeliveryState
from slicewise_server.events.feed import end_of_feed, events_after
from slicewise_server.events.models import Event
from slicewise_server.events.serializers import EventSerializer

log = logging.getLogger(__name__)

# Later tries of a delivery end a day after the event.
KEPT_FOR = timedelta(days=1)
_AT_ONCE = 2_000


def match_events(now: datetime) -> None:
    """Write deliveries for the events that have come since the last call, and close messages whose
    time of gathering is over.

    Each rule has a transaction of its own: no rule waits for another, and an error of one rule is
    logged and keeps no other waiting. A rule that another transaction has locked is left to the
    next call.
    """
    feed = FeedReader()
    # Paused channels lose no event: their deliveries wait, and are given up after a day.
    behind = AlertRule.objects.filter(active=True, position__lt=end_of_feed())
    rule_ids = list(behind.values_list("pk", flat=True))
    if rule_ids:
        # Links need the addresses of all pages, which a worker imports with the first link: not
        # while a rule is locked.
        reverse("assets:gateways")
    for rule_id in rule_ids:
        _attempt(rule_id, partial(read_on, feed=feed, now=now))
    due = Delivery.objects.filter(state=DeliveryState.GATHERING, send_at__lte=now)
    for rule_id in list(due.exclude(rule=None).values_list("rule_id", flat=True)):
        _attempt(rule_id, partial(close_messages, due_at=now))


def _attempt(rule_id: int, work: Callable[[AlertRule], object]) -> None:
    """Do work on a locked rule; log an error of the work."""
    try:
        with transaction.atomic():
            free = AlertRule.objects.select_for_update(
                of=("self",), no_key=True, skip_locked=True
            ).select_related("channel")
            if alert_rule := free.filter(pk=rule_id).first():
                work(alert_rule)
    except Exception:  # an error of one rule keeps no other waiting
        log.exception("events not matched", extra={"alert_rule": rule_id})


class FeedReader:
    """Events after a position, with their texts and the facts of their assets: all are read once
    for all rules.
    """

    def __init__(self, at_once: int = _AT_ONCE) -> None:
        """Read so many events at once."""
        self._at_once = at_once
        self._by_position: dict[int, list[Event]] = {}
        self._bodies: dict[int, dict[str, Any]] = {}
        self._assets: dict[str, _AssetFacts] = {}

    def after(self, position: int) -> list[Event]:
        """Return the next events after a position."""
        if position not in self._by_position:
            self._by_position[position] = list(events_after(position)[: self._at_once])
        return self._by_position[position]

    def body(self, event: Event) -> dict[str, Any]:
        """Return the message of an event that is sent alone."""
        if event.pk not in self._bodies:
            self._bodies[event.pk] = message([event]) | {"event": EventSerializer(event).data}
        return self._bodies[event.pk]

    def assets(self, names: Iterable[str]) -> dict[str, "_AssetFacts"]:
        """Return the present groups, tags and owners, at least of the named assets."""
        if missing := set(names) - self._assets.keys():
            self._assets |= dict.fromkeys(missing, _NOTHING_KNOWN)
            rows = Asset.objects.filter(name__in=missing)
            for name, group, tags, owners in rows.values_list("name", "group", "tags", "owners"):
                self._assets[name] = _AssetFacts(group or "", frozenset(tags), frozenset(owners))
        return self._assets


@dataclass(frozen=True, slots=True)
class _AssetFacts:
    group: str
    tags: frozenset[str]
    owners: frozenset[str]


_NOTHING_KNOWN = _AssetFacts("", frozenset(), frozenset())


@dataclass(frozen=True, slots=True)
class _Filter:
    """The lists of a rule as sets."""

    kinds: frozenset[str]
    assets: frozenset[str]
    groups: frozenset[str]
    tags: frozenset[str]
    owners: frozenset[str]

    def names(self, name: str, asset: _AssetFacts) -> bool:
        """Return whether at least one list names the asset."""
        return (
            name in self.assets
            or (asset.group != "" and asset.group in self.groups)
            or not self.tags.isdisjoint(asset.tags)
            or not self.owners.isdisjoint(asset.owners)
        )


def matching_events(
    alert_rule: AlertRule, events: Iterable[Event], feed: FeedReader
) -> Iterator[Event]:
    """Yield the events that the rule is for, by the assets' present groups, tags and owners.

    An event of no asset at all passes a filter of assets where the rule names the event's kind.
    """
    of_kind = [
        event
        for event in events
        if alert_rule.wants_kind(event.kind, of_backfill=event.backfill_id is not None)
    ]
    if alert_rule.is_for_all:
        yield from of_kind
        return
    lists = (getattr(alert_rule, name) for name in _Filter.__dataclass_fields__)
    event_filter = _Filter(*map(frozenset, lists))
    subjects = [(event, _asset_names(event)) for event in of_kind]
    assets = feed.assets(name for _, names in subjects for name in names)
    for event, names in subjects:
        if names:
            is_match = any(event_filter.names(name, assets[name]) for name in names)
        else:
            is_match = event.kind in event_filter.kinds
        if is_match:
            yield event


def _asset_names(event: Event) -> set[str]:
    """Return the event's asset and, of a backfill, all assets that the event lists."""
    listed = event.detail.get("assets") if isinstance(event.detail, dict) else None
    names = (
        {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()
    )
    return names | {event.asset} if event.asset else names


def read_on(alert_rule: AlertRule, feed: FeedReader, now: datetime) -> int:
    """Write deliveries for the next events of a locked rule; return the number of events read."""
    events = feed.after(alert_rule.position)
    if not events:
        return 0
    matched_events = list(matching_events(alert_rule, events, feed))
    if matched_events and (
        alert_rule.channel.kind == ChannelKind.WEBHOOK or not alert_rule.gather_seconds
    ):
        Delivery.objects.bulk_create(
            _alone(alert_rule, event, feed.body(event), now) for event in matched_events
        )
    elif matched_events:
        _gather(alert_rule, matched_events, now)
    position = known_position(events[-1].position)
    AlertRule.objects.filter(pk=alert_rule.pk).update(position=position)
    alert_rule.position = position
    return len(events)


def _alone(alert_rule: AlertRule, event: Event, body: dict[str, Any], now: datetime) -> Delivery:
    return Delivery(
        channel=alert_rule.channel,
        rule=alert_rule,
        rule_name=alert_rule.name,
        state=DeliveryState.WAITING,
        first_position=event.position,
        last_position=event.position,
        event_count=1,
        body=body,
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


def close_messages(alert_rule: AlertRule, *, due_at: datetime | None = None) -> None:
    """Close the open message of a rule that is locked; with a time, only if it is due by then."""
    is_open = alert_rule.deliveries.select_for_update().filter(state=DeliveryState.GATHERING)
    for delivery in is_open.filter(send_at__lte=due_at) if due_at else is_open:
        events = events_after(known_position(delivery.first_position) - 1)
        matched_events = _in_batches(
            alert_rule, events.filter(position__lte=delivery.last_position).iterator()
        )
        # Meanwhile the assets may have moved to another group, or the events may be forgotten.
        close(delivery, message(matched_events) or unlisted_message(delivery.event_count))


def close(delivery: Delivery, body: dict[str, Any]) -> None:
    """Give an open message its text: from now on the message is fixed."""
    delivery.body, delivery.state = body, DeliveryState.WAITING
    delivery.save(update_fields=["body", "state"])


def known_position(position: int | None) -> int:
    """Return the position of an event in the feed. A rule without a position would read the feed
    from the beginning, and send all of it again.
    """
    if position is None:
        raise ValueError("an event of the feed has no position")
    return position


def _in_batches(alert_rule: AlertRule, events: Iterator[Event]) -> Iterator[Event]:
    batch: list[Event] = []
    feed = FeedReader()
    for event in events:
        batch.append(event)
        if len(batch) == _AT_ONCE:
            yield from matching_events(alert_rule, batch, feed)
            batch = []
    yield from matching_events(alert_rule, batch, feed)
