"""The record of the product, read row by row and in the form of the reference."""

from collections.abc import Mapping
from datetime import UTC, datetime

from assets_app.models import DISCOVERY as DISCOVERY_IDENTITY
from assets_app.models import (
    Asset,
    AssetPartition,
    AttemptInput,
    LateInput,
    Materialization,
    RunPartition,
    ScheduleTick,
)
from tests.simulation.drawn_actions import Partition
from tests.simulation.entries import (
    InputEntry,
    Outcome,
    PartitionEntry,
    Record,
    Request,
    TickEntry,
)
from tests.simulation.reference import DISCOVERY, request_text

IdentityTexts = Mapping[tuple[str, str], str]
"""Identities in the words of the reference, present and earlier ones: by asset, and by identity on
record.
"""


def outcome(identity_texts: IdentityTexts) -> Outcome:
    """Return the record of the product."""
    return Outcome(
        versions=_versions(),
        requests=_requests(),
        partitions=_partitions(identity_texts),
        inputs=_inputs(),
        ticks=_ticks(),
    )


def _versions() -> list[Record]:
    rows = Materialization.objects.exclude(partition__identity=DISCOVERY_IDENTITY).values_list(
        "partition__asset__name", "partition__window_start", "partition__segment", "version",
        "run__trigger", "created_at",
    )  # fmt: skip
    return [
        (name, (start, segment), version, trigger or "", created_at.astimezone(UTC))
        for name, start, segment, version, trigger, created_at in rows
    ]


def _requests() -> list[Request]:
    late: dict[int, dict[str, str]] = {}
    for run, name, reason in LateInput.objects.values_list("run", "upstream__name", "reason"):
        late.setdefault(run, {})[name] = reason
    rows = RunPartition.objects.values_list(
        "partition__asset__name", "partition__window_start", "partition__segment",
        "partition__identity", "run", "run__trigger", "run__created_at", "state",
        "run__attempt_count",
    )  # fmt: skip
    return [
        (
            *(name, _partition(start, segment, identity), request_text(late.get(run, {})), trigger),
            *(at.astimezone(UTC), f"{state}, {attempts} attempts"),
        )
        for name, start, segment, identity, run, trigger, at, state, attempts in rows
    ]


def _partitions(identity_texts: IdentityTexts) -> list[PartitionEntry]:
    rows = AssetPartition.objects.exclude(state="missing", held_by=None).values_list(
        "asset__name", "identity", "window_start", "segment", "state", "last_run__skip_reason",
        "version", "held_by__trigger",
    )  # fmt: skip
    return [
        (
            *(name, identity_texts[name, identity], _partition(start, segment, identity), state),
            *((reason or "") if state == "skipped" else "", version, trigger or ""),
        )
        for name, identity, start, segment, state, reason, version, trigger in rows
    ]


def _inputs() -> list[InputEntry]:
    read: dict[int | None, list[tuple[str, Partition, int]]] = {}
    for attempt, name, start, segment, version in AttemptInput.objects.values_list(
        "attempt", "partition__asset__name", "partition__window_start", "partition__segment",
        "version",
    ):  # fmt: skip
        read.setdefault(attempt, []).append((name, (start, segment), version))
    rows = Materialization.objects.exclude(partition__identity=DISCOVERY_IDENTITY).values_list(
        "partition__asset__name", "partition__window_start", "partition__segment", "version",
        "partition__version", "attempt",
    )  # fmt: skip
    # Of an asset that is not partitioned, the inputs of the present version alone are kept.
    whole = set(Asset.objects.filter(partition_definition=None).values_list("name", flat=True))
    return [
        (name, (start, segment), version, *upstream)
        for name, start, segment, version, present, attempt in rows
        if name not in whole or version == present
        for upstream in read.get(attempt, ())
    ]


def _ticks() -> list[TickEntry]:
    rows = ScheduleTick.objects.values_list(
        "schedule__producer__name", "at", "last_at", "count", "reason", "queued", "existing",
        "in_flight", "superseded",
    )  # fmt: skip
    return [
        (
            # A function that makes several assets has a name of its own.
            *(name.removeprefix("make_"), at.astimezone(UTC), last_at.astimezone(UTC)),
            *(count, reason, (queued, existing, in_flight, superseded)),
        )
        for name, at, last_at, count, reason, queued, existing, in_flight, superseded in rows
    ]


def _partition(start: datetime | None, segment: str, identity: str) -> Partition:
    return DISCOVERY if identity == DISCOVERY_IDENTITY else (start, segment)
