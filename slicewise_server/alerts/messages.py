"""The texts of alerts: events grouped by subject and error, the most frequent first."""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.urls import NoReverseMatch, reverse

from slicewise.texts import listed, masked_text
from slicewise_server.events.models import Event, EventKind

log = logging.getLogger(__name__)

MOST_GROUPS = 10
_ERROR_LENGTH = 300
_MOST_NAMES = 10
# The failed runs of one backfill that are read for its message.
_MOST_READ = 20_000
_NOT_FOUND = "The events are forgotten, or the rule is no longer for their assets."
_VARYING = re.compile(r"\d+|0x[0-9a-f]+|'[^']*'|\"[^\"]*\"", re.IGNORECASE)
_COUNTED = {
    EventKind.RUN_FAILED: ("run failed", "runs failed"),
    EventKind.RUN_RECOVERED: ("run succeeded after a failure", "runs succeeded after a failure"),
    EventKind.VALIDATION_FAILED: ("validation failed", "validations failed"),
    EventKind.VALIDATION_WARNED: ("validation warned", "validations warned"),
    EventKind.PARTITION_OVERDUE: ("partition overdue", "partitions overdue"),
    EventKind.BACKFILL_SUCCEEDED: ("backfill succeeded", "backfills succeeded"),
    EventKind.BACKFILL_FAILED: (
        "backfill failed in part or whole",
        "backfills failed in part or whole",
    ),
    EventKind.BACKFILL_CANCELED: ("backfill canceled", "backfills canceled"),
    EventKind.WORKER_LOST: ("worker offline", "workers offline"),
    EventKind.BUNDLE_BROKEN: ("bundle with import errors", "bundles with import errors"),
    EventKind.BUNDLE_MENDED: (
        "bundle has no import errors any more",
        "bundles have no import errors any more",
    ),
    EventKind.SCHEDULE_TRUNCATED: ("schedule left out partitions", "schedules left out partitions"),
}

_WORDS = {str(kind): words for kind, words in _COUNTED.items()}


@dataclass(slots=True)
class Group:
    """Events of one kind, subject and error, with the last event as the example."""

    count: int
    last: Event


def message(events: Iterable[Event]) -> dict[str, Any]:
    """Return title and text of a message about events, which are read once, in order; without
    events, nothing.
    """
    groups, counts = group(events)
    if not groups:
        return {}
    lines = [line for entry in groups[:MOST_GROUPS] for line in _lines(entry)]
    if len(groups) > MOST_GROUPS:
        rest = sum(entry.count for entry in groups[MOST_GROUPS:])
        lines.append(f"{rest:,} more events of other kinds or with other errors.")
    return {"title": _title(counts, groups), "text": "\n".join(lines)}


def unlisted_message(count: int, reason: str = _NOT_FOUND) -> dict[str, Any]:
    """Return title and text of a message that lists no event, for the reason."""
    return {
        "title": f"Slicewise: {count:,} {'event' if count == 1 else 'events'}",
        "text": reason,
    }


def group(events: Iterable[Event]) -> tuple[list[Group], Counter[str]]:
    """Return the groups of events, the largest first, and the number of events of each kind."""
    groups: dict[tuple[object, ...], Group] = {}
    counts: Counter[str] = Counter()
    for event in events:
        counts[event.kind] += 1
        subject = event.asset or event.bundle or event.worker
        # Each backfill is a group of its own: its counts are in its event.
        backfill = event.backfill_id if event.kind.startswith("backfill_") else None
        key = (event.kind, subject, backfill, fingerprint(event.error))
        entry = groups.setdefault(key, Group(0, event))
        entry.count, entry.last = entry.count + 1, event
    return sorted(groups.values(), key=lambda entry: -entry.count), counts


def fingerprint(error: str) -> str:
    """Return the last line of an error without numbers and quoted words, which vary by run."""
    return _VARYING.sub("…", error.strip().rsplit("\n", 1)[-1])[:_ERROR_LENGTH]


def counted(kind: str, count: int) -> str:
    """Return a number of events of a kind in words; a kind without words stands for itself."""
    singular, plural = _WORDS.get(kind, (kind, kind))
    return f"1 {singular}" if count == 1 else f"{count:,} {plural}"


def link(event: Event) -> str:
    """Return the address of the event's page; empty where SLICEWISE_URL is not set."""
    base = settings.SLICEWISE_URL.rstrip("/")
    if not base:
        return ""
    if event.kind.startswith("backfill_"):
        return base + reverse("backfills:backfill", args=[event.backfill_id])
    if event.run_id:
        return base + reverse("assets:run", args=[event.run_id])
    if event.asset:
        return base + reverse("assets:asset", args=[event.asset])
    return base + reverse("assets:bundles" if event.bundle else "assets:gateways")


def _title(counts: Counter[str], groups: Sequence[Group]) -> str:
    counts_text = ", ".join(counted(kind, count) for kind, count in counts.most_common(3))
    subjects = {entry.last.asset or entry.last.bundle or entry.last.worker for entry in groups}
    subject = subjects.pop() if len(subjects) == 1 else ""
    return f"Slicewise: {counts_text}" + (f" ({subject})" if subject else "")


def _lines(entry: Group) -> list[str]:
    """Return the lines of a group. An event without the facts or the page of its kind, such as one
    of another version of Slicewise, has one plain line: no message fails for one event.
    """
    event = entry.last
    name = event.detail.get("name", "") if isinstance(event.detail, dict) else ""
    subject = event.asset or event.bundle or event.worker or name or "Slicewise"
    error = masked_text(event.error.strip().rsplit("\n", 1)[-1])[:_ERROR_LENGTH]
    lines = [f"{subject}: {counted(event.kind, entry.count)}" + (f": {error}" if error else "")]
    try:
        address = link(event)
        return [*lines, *_facts(event), *([f"  {address}"] if address else ())]
    except (AttributeError, LookupError, TypeError, ValueError, NoReverseMatch):
        log.exception("event not worded", extra={"event": event.pk})
        return lines


def _facts(event: Event) -> list[str]:
    detail = event.detail
    if event.kind.startswith("backfill_"):
        return _backfill_facts(event)
    if event.kind == EventKind.SCHEDULE_TRUNCATED:
        partitions = f"{detail['partitions']:,} partitions, {detail['first']} to {detail['last']}"
        return [f"  {partitions}, not examined; the newest {detail['queued']:,} were examined."]
    if event.kind == EventKind.PARTITION_OVERDUE:
        return [f"  {detail['partition']}, expected by {detail['overdue_at']}"]
    lines = []
    if outlets := detail.get("assets"):
        lines = [f"  materializes {listed([*map(str, outlets)], _MOST_NAMES)}"]
    if names := detail.get("validations"):
        return [*lines, f"  {', '.join(map(str, names))}"]
    if detail.get("failed_partitions"):
        return [*lines, f"  {_partial_failure(detail)}"]
    return [*lines, f"  partitions {detail['selection']}"] if detail.get("selection") else lines


def _partial_failure(detail: dict[str, Any]) -> str:
    """Return the failed partitions of a run that published its other partitions."""
    named_keys, failed_count = [*map(str, detail["failed_partitions"])], int(detail["failed"])
    more_count = failed_count - len(named_keys)
    names = ", ".join(named_keys) + (f" and {more_count:,} more" if more_count > 0 else "")
    return f"{failed_count:,} of {detail['partitions']:,} partitions failed: {names}"


def _backfill_facts(event: Event) -> list[str]:
    partitions = event.detail["partitions"]
    counts = [
        f"{partitions[name]:,} {name}"
        for name in ("succeeded", "failed", "canceled", "skipped")
        if partitions[name]
    ]
    lines = [f"  {', '.join(counts) or 'no'} of {partitions['total']:,} partitions"]
    if not partitions["failed"]:
        return lines
    failed = Event.objects.filter(backfill_id=event.backfill_id, kind=EventKind.RUN_FAILED)
    for entry in group(failed.order_by("id")[:_MOST_READ].iterator())[0][:3]:
        error = masked_text(entry.last.error.strip().rsplit("\n", 1)[-1])[:_ERROR_LENGTH]
        lines.append(f"  {counted(EventKind.RUN_FAILED, entry.count)}: {error}")
    return lines
