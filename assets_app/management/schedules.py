"""The output of ``assets schedule``: the schedule of an asset, ticks and partitions under way."""

from collections.abc import Sequence

from accounts_app.management.command import SlicewiseCommand
from assets_app.models import Asset, ScheduleTick
from assets_app.queries.clock import database_now
from assets_app.queries.ticks import ticks_of, truncations_of
from assets_app.scheduling.descriptions import ScheduleDescription, describe_schedule
from assets_app.scheduling.missed import Missed, missed_by
from assets_app.scheduling.progress import progress_of
from assets_app.serializers import (
    MissedSerializer,
    ScheduleSerializer,
    ScheduleTruncationSerializer,
    TickSerializer,
)
from slicewise.texts import counted, masked_text


def print_schedule(command: SlicewiseCommand, asset: Asset, limit: int) -> None:
    """Print the schedule of an asset and the latest ``limit`` ticks (0: all).

    Partitions under way, truncations and missed partitions follow.
    """
    words, now = describe_schedule(asset), database_now()
    ticks = [] if words is None else list(ticks_of(words.row)[: limit or None])
    under_way = [] if words is None or words.row.by_time else progress_of(asset, now)
    truncations = [] if words is None else truncations_of(asset)
    missed = missed_by(asset, now)
    if command.json:
        command.print_json(
            {
                "schedule": None if words is None else ScheduleSerializer(words).data,
                "on_their_way": [
                    {"key": partition.row.key, "upstream": partition.counts}
                    for partition in under_way
                ],
                "ticks": TickSerializer(ticks, many=True).data,
                "truncations": ScheduleTruncationSerializer(truncations, many=True).data,
                "missed": None if missed is None else MissedSerializer(missed).data,
            }
        )
        return
    if words is None:
        reason = (
            "another program writes the asset, and Slicewise starts no runs"
            if asset.producer_id is None
            else "only requests and backfills materialize the asset"
        )
        command.say(f"{asset.name} has no schedule: {reason}.")
        return
    _print_facts(command, words)
    if under_way:
        command.print_table(
            ("waiting for upstream", "upstream ready"),
            ((partition.row.key, partition.text) for partition in under_way),
        )
    _print_ticks(command, words, ticks)
    if missed is not None:
        command.say(_missed_line(missed))
    for truncation in truncations:
        command.say(
            f"Not examined at {truncation.at:%Y-%m-%d %H:%M} UTC, more than one upstream write or"
            f" tick examines: {truncation.count:,} partitions, {truncation.first} to"
            f" {truncation.last}."
        )


def _print_facts(command: SlicewiseCommand, words: ScheduleDescription) -> None:
    row = words.row
    facts: dict[str, object] = {
        "rule": f"{words.text} ({words.meaning})" if words.meaning else words.text,
        "paused": "yes" if words.asset.paused else "no",
    }
    if words.has_times:
        facts |= {
            "zone": words.timezone,
            "start": words.start,
            "end": words.end,
            "next tick": words.local(row.next_at) or "none",
            "evaluated until": words.local(row.handled_until),
        }
    if row.failures and row.retry_at is not None:
        facts["error"] = f"{masked_text(row.error)} (tried again at {words.local(row.retry_at)})"
    command.print_facts(facts)


def _print_ticks(
    command: SlicewiseCommand, words: ScheduleDescription, ticks: Sequence[ScheduleTick]
) -> None:
    if ticks:
        columns = ("ticks", "queued", "already materialized", "in progress", "skipped", "")
        lines = (_tick_line(words, tick) for tick in ticks)
        command.print_table((f"tick ({words.timezone})", *columns), lines)


def _tick_line(words: ScheduleDescription, tick: ScheduleTick) -> tuple[object, ...]:
    tick_time = words.local(tick.at)
    return (
        tick_time if tick.at == tick.last_at else f"{tick_time} to {words.local(tick.last_at)}",
        tick.count, tick.queued, tick.existing, tick.in_flight, tick.superseded,
        tick.get_reason_display(),
    )  # fmt: skip


def _missed_line(missed: Missed) -> str:
    at_least = "" if missed.is_all else "at least "
    keys = f": {missed.selection or f'{missed.first} to {missed.last}'}" if missed.first else ""
    return f"Missed while paused, {at_least}{counted(missed.count, 'partition')}{keys}."
