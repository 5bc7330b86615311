"""The rows of attempts that events tell of: a few statements for all attempts of a batch."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Count, Prefetch, Q, QuerySet, Sum

from assets_app.models import (
    DISCOVERY,
    Asset,
    AttemptInput,
    GroupKind,
    Materialization,
    Run,
    RunAttempt,
    RunGroup,
    RunPartition,
    ValidationResult,
)
from backfills_app.models import Backfill
from slicewise_server.lineage.models import LineageEvent
from slicewise_server.lineage.producer_facts import SharedFacts

MOST_KEYS = 50_000
"""The number of partitions of one dataset whose keys an event names; of more, the number alone."""

# Rows of events are read together: of at most so many events, with at most so many partitions to
# write, inputs, and written partitions in all. An event with more is read alone.
_GROUP = 100
_MOST_ROWS = 20_000
_ROW_COUNTS = """
SELECT attempt.id, run.partition_count + (
    SELECT count(*) FROM (
        SELECT FROM assets_app_attemptinput WHERE attempt_id = attempt.id LIMIT %(most)s
    ) AS inputs
) + (
    SELECT count(*) FROM (
        SELECT FROM assets_app_materialization WHERE run_id = attempt.run_id LIMIT %(most)s
    ) AS materializations
)
FROM assets_app_runattempt AS attempt
JOIN assets_app_run AS run ON run.id = attempt.run_id
WHERE attempt.id = ANY(%(ids)s)
"""
# The one row that a run holds which discovers partitions is no partition.
_IS_PARTITION = ~Q(partition__identity=DISCOVERY)


_ATTEMPT_COLUMNS = (
    "run_id", "number", "spark_session_id", "started_at", "outcome", "error", "traceback",
)  # fmt: skip
_RUN_COLUMNS = ("group_id", "producer_version_id", "asset_id", "tick_id")
_GROUPS = Prefetch("run__group", RunGroup.objects.only("kind", "created_at"))
_REQUESTED_ASSETS = Prefetch("run__asset", Asset.objects.only("name"))


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedPartitions:
    """The partitions of a dataset that an attempt has read, has written, or was to write.

    ``versions`` is None before the data is written. Keys and versions are left out where there are
    more than MOST_KEYS.
    """

    count: int = 0
    keys: Sequence[str] = ()
    versions: Mapping[str, int] | None = None
    rows: int | None = None
    bytes: int | None = None


PartitionsByAsset = Mapping[int, UsedPartitions]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRows:
    """An attempt with the partitions that its run was to write, and that it has written and read.

    Nothing is written, read or validated before the attempt has ended. All attempts of a group have
    the same ``shared`` facts.
    """

    attempt: RunAttempt
    # The backfill of the run, if the run belongs to one.
    backfill: Backfill | None
    shared: SharedFacts
    planned: PartitionsByAsset
    written: PartitionsByAsset
    read: PartitionsByAsset
    validations: Sequence[ValidationResult]


class _Counted(NamedTuple):
    partitions: int
    rows: int | None = None
    bytes: int | None = None


def _used(
    rows: QuerySet[Any], owner: str, columns: Sequence[str] = (), sums: Sequence[str] = ()
) -> Mapping[int, PartitionsByAsset]:
    """Return the partitions among the rows by the id of their run or attempt: two statements."""
    counted = rows.order_by().values_list(f"{owner}_id", "partition__asset_id")
    partitions = Count("pk", filter=_IS_PARTITION)
    totals = {f"all_{column}": Sum(column) for column in sums}
    counts = {
        (owner_id, asset_id): _Counted(*numbers)
        for owner_id, asset_id, *numbers in counted.annotate(partitions=partitions, **totals)
        if numbers[0]
    }
    versions = _versions(rows, owner, columns, counts)
    used: dict[int, dict[int, UsedPartitions]] = {}
    for (owner_id, asset_id), numbers in counts.items():
        used.setdefault(owner_id, {})[asset_id] = UsedPartitions(
            count=numbers.partitions,
            keys=list(versions.get((owner_id, asset_id), ())),
            versions=versions.get((owner_id, asset_id), {}) if columns else None,
            rows=numbers.rows,
            bytes=numbers.bytes,
        )
    return used


def _versions(
    rows: QuerySet[Any],
    owner: str,
    columns: Sequence[str],
    counts: Mapping[tuple[int, int], _Counted],
) -> dict[tuple[int, int], dict[str, int]]:
    """Return the versions by key, for each run or attempt and asset with at most MOST_KEYS."""
    listed = {pair[1] for pair, numbers in counts.items() if numbers.partitions <= MOST_KEYS}
    versions: dict[tuple[int, int], dict[str, int]] = {}
    if not listed:
        return versions
    named = (f"{owner}_id", "partition__asset_id", "partition__key", *columns)
    for owner_id, asset_id, key, *version in rows.filter(
        _IS_PARTITION, partition__asset__in=listed
    ).values_list(*named):
        versions.setdefault((owner_id, asset_id), {})[key] = version[0] if version else 0
    return versions


def rows_of(events: Sequence[LineageEvent]) -> list[AttemptRows | None]:
    """Return the rows for each event; None where the attempt is no longer on record."""
    attempts = _attempts({event.attempt_id for event in events})
    ended = attempts.keys() & {event.attempt_id for event in events if event.is_end}
    ended_runs = {attempts[pk].run_id for pk in ended}
    planned = _used(
        RunPartition.objects.filter(run__in={attempt.run_id for attempt in attempts.values()}),
        "run",
    )
    written = _used(
        Materialization.objects.filter(run__in=ended_runs, attempt__in=ended),
        "attempt",
        ["version"],
        ["rows", "bytes"],
    )
    read = _used(AttemptInput.objects.filter(attempt__in=ended), "attempt", ["version"])
    validations: dict[int, list[ValidationResult]] = {}
    for result in ValidationResult.objects.filter(attempt__in=ended).defer("observed"):
        validations.setdefault(result.attempt_id, []).append(result)
    shared = SharedFacts(_assets(attempts.values()))
    backfills = _backfills(attempts.values())

    def of_event(event: LineageEvent) -> AttemptRows | None:
        attempt = attempts.get(event.attempt_id)
        if attempt is None:
            return None
        pk, is_end = attempt.pk, event.is_end
        return AttemptRows(
            attempt=attempt,
            backfill=backfills.get(attempt.run.group_id),
            shared=shared,
            planned=planned.get(attempt.run_id, {}),
            written=written.get(pk, {}) if is_end else {},
            read=read.get(pk, {}) if is_end else {},
            validations=validations.get(pk, ()) if is_end else (),
        )

    return [of_event(event) for event in events]


def groups_of(events: Sequence[LineageEvent]) -> Iterator[list[LineageEvent]]:
    """Yield the events in order, in groups with a bounded number of rows."""
    with connection.cursor() as cursor:
        ids = list({event.attempt_id for event in events})
        cursor.execute(_ROW_COUNTS, {"ids": ids, "most": _MOST_ROWS})
        row_counts = dict(cursor.fetchall())
    group: list[LineageEvent] = []
    rows = 0
    for event in events:
        added = row_counts.get(event.attempt_id, 0)
        if group and (len(group) == _GROUP or rows + added > _MOST_ROWS):
            yield group
            group, rows = [], 0
        group.append(event)
        rows += added
    if group:
        yield group


def _attempts(ids: Collection[int]) -> dict[int, RunAttempt]:
    attempts = RunAttempt.objects.filter(pk__in=ids).only(*_ATTEMPT_COLUMNS)
    runs = Prefetch("run", Run.objects.only(*_RUN_COLUMNS))
    # Many attempts have the same code, which may be long: each version is read once.
    rows = attempts.prefetch_related(
        runs, "run__producer_version", _GROUPS, "run__tick", _REQUESTED_ASSETS
    )
    return {row.pk: row for row in rows}


def _assets(attempts: Iterable[RunAttempt]) -> dict[str, Asset]:
    versions = {
        attempt.run.producer_version_id: attempt.run.producer_version for attempt in attempts
    }
    names: set[str] = set()
    for version in versions.values():
        # A declaration that cannot be read refuses the events of its own attempts, when they are
        # built, and no other.
        with suppress(Exception):
            names |= {*version.spec.upstream_names, *version.spec.outlet_names}
    rows = Asset.objects.select_related("partition_definition").filter(name__in=names)
    return {asset.name: asset for asset in rows}


def _backfills(attempts: Iterable[RunAttempt]) -> dict[int, Backfill]:
    groups = {
        attempt.run.group_id for attempt in attempts if attempt.run.group.kind == GroupKind.BACKFILL
    }
    if not groups:
        return {}
    rows = Backfill.objects.select_related("asset").filter(group__in=groups)
    return {backfill.group_id: backfill for backfill in rows}
