"""Spans of time in which the schedule of a paused asset misses the windows that end.

A span is ended by the rule under which it began: a rule has no ticks before it was declared, and
none after its end.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from assets_app.models import Schedule
from assets_app.queries.schedule_ticks import term_rules
from assets_app.queries.time_rules import has_times
from slicewise import DefinitionError

# Two moments.
Span = tuple[datetime, datetime]


def spans_of(row: Schedule, now: datetime) -> list[Span]:
    """Return the spans of the last pause in order of time; windows that ended after the first time
    of a span and up to the second are missed.
    """
    spans = row.ended_spans
    # A process of an earlier version, which knows no spans, may have begun or ended the pause.
    since = row.misses_since
    if since is None and row.is_in_pause and has_times(row.rule):
        since = row.handled_before_pause
    if since is None or row.rule is None:
        return spans
    until = _missed_until(row.rule, row.unpaused_at or now)
    if until is None or until <= since:
        return spans
    if spans and spans[-1][1] == since:
        since = spans.pop()[0]
    return [*spans, (since, until)]


def _missed_until(schedule_rule: Mapping[str, Any], moment: datetime) -> datetime | None:
    """Return until when the windows are missed that end before a moment: until the moment, since
    no later tick queues these windows; but until the last tick of a schedule that has ended. None
    without such a tick.
    """
    try:
        schedules = list(term_rules(schedule_rule).values())
    except DefinitionError:
        # An old rule, which this version or this host cannot read any more.
        return moment
    if any(ticks.next_after(moment) is not None for ticks in schedules):
        return moment
    last_ticks = (ticks.last_until(moment) for ticks in schedules)
    return max((tick for tick in last_ticks if tick is not None), default=None)
