"""Sending of waiting events: one worker at a time, in the order in which the events were written.

Events that the receiver has refused come after all events that were never sent.

An event is sent at least once, always with the same run id, type and time: a worker that dies
between the answers and their record leaves at most one group of events to be sent again.
"""

import logging
import time
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID, uuid4

import requests
from django.db import InterfaceError, OperationalError, connection
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from openlineage.client.event_v2 import RunEvent

from assets_app.queries.clock import database_now, database_time
from slicewise_server.alerts.delivering import pause_after
from slicewise_server.alerts.sending import failure
from slicewise_server.lineage.attempt_rows import AttemptRows, groups_of, rows_of
from slicewise_server.lineage.client_settings import sends_events
from slicewise_server.lineage.event_client import TransportIncomplete, emit
from slicewise_server.lineage.models import LineageEvent, LineageReceiver
from slicewise_server.lineage.outbox import write_missing_ends, write_starts
from slicewise_server.lineage.run_events import run_event

log = logging.getLogger(__name__)

_ROUND_SECONDS = 20.0
# Longer than a round, the last event of the round, a probe and another try of the event together.
_CLAIM = timedelta(minutes=4)
_AT_ONCE = 100
# After so many failures in a row another event is tried: the fault may be the first event's.
_FAILURES_BEFORE_PROBE = 5
# The request was understood, and this event is not accepted. Other answers say nothing of an event.
_REFUSING = frozenset({400, 409, 413, 414, 422, 431})
# The end of an attempt locks the attempt's start: nobody waits here for such a lock with other
# events locked.
_RECORD_UNLOCKED = """
UPDATE lineage_lineageevent SET sent_at = statement_timestamp(), error = ''
WHERE id IN (
    SELECT id FROM lineage_lineageevent WHERE id = ANY(%s) FOR UPDATE SKIP LOCKED
) RETURNING id
"""


class EventRefused(Exception):
    """An event that cannot be sent while the receiver is well; the message is for people."""


def send_due() -> int:
    """Send the events that wait, the earliest first; return the number of sent events.

    The round ends with the first failure of the receiver, which pauses all events. An event that
    the receiver refuses, or that fails while the receiver takes another one, pauses alone.
    """
    if not sends_events():
        return 0
    write_starts()
    write_missing_ends()
    if not _next_events(1) or not (claim := _claim()):
        return 0
    try:
        return _send_round(time.monotonic() + _ROUND_SECONDS)
    finally:
        LineageReceiver.objects.filter(claim=claim).update(claim=None, claimed_until=None)


def _never_sent() -> QuerySet[LineageEvent]:
    waiting = LineageEvent.objects.filter(sent_at__isnull=True, not_before__isnull=True)
    return waiting.order_by("id")


def _next_events(most: int) -> list[LineageEvent]:
    """Return the next events to send: those that were never sent, then refused ones that are due.

    A receiver that refuses much would otherwise get nothing but the refused events again.
    """
    events = list(_never_sent()[:most])
    if len(events) < most:
        # The time of the statement, which an index can use, unlike `clock_timestamp`.
        refused = LineageEvent.objects.filter(sent_at__isnull=True, not_before__lte=Now())
        events += refused.order_by("not_before")[: most - len(events)]
    return events


def _claim() -> UUID | None:
    """Claim the receiver for this worker; return None where another worker sends, or all events
    pause.
    """
    LineageReceiver.objects.get_or_create(pk=LineageReceiver.ROW_ID)
    claim = uuid4()
    is_free = Q(claimed_until__isnull=True) | Q(claimed_until__lt=database_time())
    is_ready = Q(retry_at__isnull=True) | Q(retry_at__lte=database_time())
    receiver = LineageReceiver.objects.filter(is_free, is_ready, pk=LineageReceiver.ROW_ID)
    claimed = receiver.update(claim=claim, claimed_until=database_time(_CLAIM))
    return claim if claimed else None


def _send_round(latest: float) -> int:
    """Send groups of events until few wait: events that come meanwhile are sent together in the
    next round. To read, build and record a group costs as much as to send fifteen events.
    """
    count = 0
    probe_ids: set[int] = set()
    while events := _next_events(_AT_ONCE):
        for group in groups_of(events):
            sender = _GroupSender(group, probe_ids)
            may_go_on = sender.send_all(latest)
            count += sender.handled_count
            if not may_go_on or time.monotonic() >= latest:
                return count
        if len(events) < _AT_ONCE:
            break
    return count


class _BuiltEvent(NamedTuple):
    event: LineageEvent
    body: RunEvent


class _GroupSender:
    """Sends events one after the other, and records sent events together, some times a second.

    ``probe_ids`` are the events that were sent before their turn; the sender skips them, and adds
    its own.
    """

    def __init__(self, events: Sequence[LineageEvent], probe_ids: set[int]) -> None:
        self._probe_ids = probe_ids
        self.handled_count = 0
        self._events = [event for event in events if event.pk not in probe_ids]

    def send_all(self, latest: float) -> bool:
        """Send the events until ``latest``; return False after a failure of the receiver."""
        waiting = deque(self._built())
        while waiting:
            emission = emit([built.body for built in waiting])
            sent = [waiting.popleft().event.pk for _ in range(emission.sent_count)]
            if sent:
                _record_successes(sent)
                self.handled_count += len(sent)
            if emission.error is not None:
                if not self._may_go_on(waiting.popleft(), emission.error):
                    return False
                self.handled_count += 1
            waiting = deque(built for built in waiting if built.event.pk not in self._probe_ids)
            if time.monotonic() >= latest:
                break
        return True

    def _built(self) -> Iterator[_BuiltEvent]:
        """Yield the events with their bodies; record a refusal of each event without a body."""
        rows = _rows_by_event(self._events)
        for event in self._events:
            try:
                body = _body_of(event, rows.get(event.pk))
            except EventRefused as error:
                _record_refusal(event, str(error))
                self.handled_count += 1
            else:
                yield _BuiltEvent(event, body)

    def _may_go_on(self, built: _BuiltEvent, error: Exception) -> bool:
        """Record the failure of an event; return False for a failure of the receiver."""
        event = built.event
        if (status := _refusing_status(error)) is not None:
            _record_refusal(event, f"The receiver refused the event with status {status}.")
            return True
        sentence = _sentence(error)
        log.warning("lineage event not sent", extra={"event": event.pk, "error": sentence})
        if not ((_is_answer(error) and event.refusals) or self._takes_another(event)):
            _record_failure(sentence)
            return False
        # A network may have come back between the event and the other one.
        if not _is_answer(error) and emit([built.body]).error is None:
            _record_successes([event.pk])
            return True
        _record_refusal(event, sentence)
        return True

    def _takes_another(self, event: LineageEvent) -> bool:
        """Return whether the receiver, which fails again and again, takes the start of an attempt
        other than the event's. No attempt has an event before its start.
        """
        failures = LineageReceiver.objects.get(pk=LineageReceiver.ROW_ID).failures
        if failures < _FAILURES_BEFORE_PROBE:
            return False
        starts = _never_sent().filter(is_end=False).exclude(attempt=event.attempt_id)
        probe = starts.order_by("-id").first()
        if probe is None:
            return False
        try:
            body = _body_of(probe, _rows_by_event([probe]).get(probe.pk))
        except EventRefused:  # this event waits on
            return False
        if emit([body]).error is not None:
            return False
        self._probe_ids.add(probe.pk)
        _record_successes([probe.pk])
        return True


def _rows_by_event(events: Sequence[LineageEvent]) -> dict[int, AttemptRows | None]:
    """Return the rows of the events; an event without an entry has rows that cannot be read."""
    try:
        return dict(zip((event.pk for event in events), rows_of(events), strict=True))
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("lineage not read", extra={"events": [event.pk for event in events]})
        if len(events) == 1:
            return {}
    # One event that cannot be read must keep no other waiting.
    return {pk: rows for event in events for pk, rows in _rows_by_event([event]).items()}


def _is_answer(error: Exception) -> bool:
    """Return whether the receiver has answered: no network keeps the event from the receiver."""
    return isinstance(error, requests.HTTPError | requests.exceptions.RetryError)


def _status(error: Exception) -> int | None:
    """Return the status of an answer; None without one: a transport may raise any error itself."""
    response = error.response if isinstance(error, requests.HTTPError) else None
    return None if response is None else int(response.status_code)


def _body_of(event: LineageEvent, rows: AttemptRows | None) -> RunEvent:
    """Build the body of an event. An event that cannot be built must keep no other waiting."""
    if rows is None:
        raise EventRefused("The record of the attempt cannot be read.")
    try:
        return run_event(event, rows)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        log.exception("lineage event not built", extra={"event": event.pk})
        raise EventRefused(f"The event could not be built: {type(error).__name__}.") from error


def _refusing_status(error: Exception) -> int | None:
    """Return the status by which the receiver refuses an event; None for another failure."""
    status = _status(error)
    return status if status in _REFUSING else None


def _sentence(error: Exception) -> str:
    """Return the reason of a failure without words of a library, which may hold secrets."""
    if (status := _status(error)) is not None:
        return f"The receiver answered with status {status}."
    if isinstance(error, TransportIncomplete):
        return str(error)
    if isinstance(error, requests.exceptions.RetryError):
        return "The receiver answered with errors, also to the client's own further tries."
    return failure(error).text


def _record_successes(event_ids: Sequence[int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_RECORD_UNLOCKED, [list(event_ids)])
        recorded = {row[0] for row in cursor.fetchall()}
    for event_id in set(event_ids) - recorded:
        LineageEvent.objects.filter(pk=event_id).update(sent_at=database_now(), error="")
    receiver = LineageReceiver.objects.filter(pk=LineageReceiver.ROW_ID)
    receiver.exclude(failures=0).update(failures=0, error="", retry_at=None)


def _record_failure(error: str) -> None:
    receiver = LineageReceiver.objects.get(pk=LineageReceiver.ROW_ID)
    receiver.failures += 1
    receiver.error = error
    receiver.retry_at = database_now() + pause_after(receiver.failures)
    receiver.save(update_fields=["failures", "error", "retry_at"])


def _record_refusal(event: LineageEvent, error: str) -> None:
    refusals = event.refusals + 1
    LineageEvent.objects.filter(pk=event.pk).update(
        refusals=refusals, error=error, not_before=database_now() + pause_after(refusals)
    )
