"""Requests of people to materialize partitions of one asset now (AIP-76, Manual Runs)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from django.conf import settings

import slicewise
from accounts_app import audit, policy
from accounts_app.models import User
from assets_app.execution.queue.claims import ClaimedPartition, RunSpec, claim
from assets_app.execution.queue.messages import nudge_dispatch
from assets_app.execution.queue.waiting import missing_before, waits_for_past
from assets_app.execution.request.param_types import with_declared_types
from assets_app.execution.request.patience import patient_transaction
from assets_app.models import Asset, GroupKind, ProducerVersion, Queue, RunGroup, Target, Trigger
from assets_app.queries.clock import database_now
from assets_app.queries.lookups import not_partitioned_sentence
from partitions_app.rules import has_time
from slicewise.partitions import PartitionRow, partition_rows
from slicewise.texts import listed
from slicewise_server.web.request_errors import ConflictingRequest, InvalidRequest

T = TypeVar("T")
Strategy = str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterializeRequest:
    """A request to materialize partitions of an asset.

    ``selection`` is empty only for an asset that is not partitioned, and for a run that is to
    discover the partitions of an asset.
    """

    asset: Asset
    selection: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    strategy: Strategy | None = None


def materialize(request: MaterializeRequest, *, user: User) -> RunGroup:
    """Queue runs for the partitions; a materialized partition is run again, with its history kept.

    Partitions that another run is materializing are left out and named in the group. If all
    partitions are left out, or other transactions have locked some for longer than a moment, the
    request conflicts. Raises InvalidRequest on ``asset``, ``selection``, ``params`` or
    ``strategy``, and PermissionDenied.
    """
    policy.require(user, policy.Action.MATERIALIZE)
    target = _target(request)
    asset, version = target.asset, require_producer(target.asset)
    params = checked_params(version, request.params)
    strategy = checked_strategy(request.strategy, default=version.spec.strategy)
    if target.is_discovering:
        rows = list(partition_rows(None, None))
    else:
        rows = selected_rows(asset, request.selection, now=database_now())
    with patient_transaction("selection"):
        group = RunGroup.objects.create(
            kind=GroupKind.REQUEST,
            label=f"{asset.name} {request.selection}".strip()[:300],
            queue=Queue.SCHEDULED,
            created_by=user,
        )
        run_terms = RunSpec(
            target=target,
            producer_version=version,
            group=group,
            trigger=Trigger.MANUAL,
            params=params,
            requested_by=user,
        )
        claimed, held_rows = claim(run_terms, list(batches(rows, strategy)))
        refuse_removed(asset, rows, claimed, held_rows, field="selection")
        if not claimed:
            raise ConflictingRequest({"selection": in_flight_sentence(asset, held_rows)})
        group.in_flight = [row.key for row in held_rows]
        if waits_for_past(version):
            group.earlier_missing = missing_before(asset, [partition.row for partition in claimed])
        if group.in_flight or group.earlier_missing:
            group.save(update_fields=["in_flight", "earlier_missing"])
        audit.record(
            user,
            "materialize",
            "asset",
            asset.name,
            {"selection": request.selection, "partitions": len(claimed), "group": group.pk},
        )
        nudge_dispatch()
    return group


def _target(request: MaterializeRequest) -> Target:
    """Return the target of the request: discovery if no partition is selected (AIP-76)."""
    asks_for_none = request.asset.finds_partitions and not request.selection.strip()
    return Target(request.asset, is_discovering=asks_for_none)


def preview_selection(asset: Asset, selection: str) -> slicewise.PartitionSet:
    """Return the partitions that the text selects; raise InvalidRequest if there are none."""
    definition = asset.definition
    if definition is None:
        raise InvalidRequest({"selection": not_partitioned_sentence(asset)})
    if not selection.strip():
        raise InvalidRequest(
            {"selection": "Name the partitions, for example by a key or from..to."}
        )
    try:
        chosen: slicewise.PartitionSet = definition.select(selection, until=database_now())
    except ValueError as error:
        raise InvalidRequest({"selection": str(error)}) from error
    if not len(chosen):
        raise InvalidRequest({"selection": f"{selection} selects no partition of {asset.name}."})
    return chosen


def selected_rows(
    asset: Asset, selection: str, *, now: datetime, instead: str = ""
) -> list[PartitionRow]:
    """Return the selected partitions in order.

    Raises InvalidRequest for a selection with no partitions, with too many (the message ends
    with ``instead``, or else advises a backfill where one is possible), or with partitions that are
    not over yet.
    """
    if asset.definition is None:
        if selection.strip():
            raise InvalidRequest({"selection": not_partitioned_sentence(asset)})
        return list(partition_rows(None, None))
    chosen = preview_selection(asset, selection)
    most = settings.MAX_PARTITIONS_PER_REQUEST
    if len(chosen) > most:
        can_backfill = has_time(asset.definition)
        advice = "Start a backfill instead." if can_backfill else "Name fewer in each request."
        raise InvalidRequest(
            {
                "selection": f"{len(chosen):,} partitions are more than one request may name"
                f" ({most:,}, setting MAX_PARTITIONS_PER_REQUEST). {instead or advice}"
            }
        )
    rows = list(partition_rows(asset.definition, chosen))
    refuse_unfinished(rows, now=now, field="selection")
    return rows


def refuse_unfinished(rows: Sequence[PartitionRow], *, now: datetime, field: str) -> None:
    """Raise InvalidRequest if the last of the partitions is not over at ``now``."""
    last = rows[-1]
    if last.end is not None and last.end > now:
        raise InvalidRequest(
            {field: f"{last.key} is not over yet: it ends at {last.end:%Y-%m-%d %H:%M} UTC."}
        )


def refuse_removed(
    asset: Asset,
    rows: Sequence[PartitionRow],
    claimed: Sequence[ClaimedPartition],
    held_rows: Sequence[PartitionRow],
    *,
    field: str,
) -> None:
    """Raise InvalidRequest if a partition was neither claimed nor is held: its key was removed."""
    present_keys = {row.key for row in (*held_rows, *(partition.row for partition in claimed))}
    removed_keys = [row.key for row in rows if row.key not in present_keys]
    if removed_keys:
        names = listed(removed_keys, 3)
        raise InvalidRequest({field: f"{asset.name} has no partition {names} any more."})


def require_declared(asset: Asset) -> None:
    """Raise InvalidRequest on ``asset`` if no loaded file declares the asset any more."""
    if not asset.active:
        raise InvalidRequest(
            {"asset": f"{asset.name} is not declared by any loaded file any more."}
        )


def require_producer(asset: Asset) -> ProducerVersion:
    """Return the version of the code that materializes the asset now.

    Raises InvalidRequest on ``asset`` if no function here materializes the asset.
    """
    require_declared(asset)
    version = asset.producer.current_version if asset.producer else None
    if version is None:
        raise InvalidRequest(
            {
                "asset": f"{asset.name} is written by another program: no function here"
                " materializes it."
            }
        )
    if asset.name not in version.outlets:
        raise InvalidRequest(
            {
                "asset": f"{version.producer.name} no longer materializes {asset.name}, and the"
                f" file that declared {asset.name} has errors."
            }
        )
    return version


def checked_params(version: ProducerVersion, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the declared params, overridden by the given params.

    Raises InvalidRequest on ``params`` for unknown names, and for values of another type than the
    declared default.
    """
    if not isinstance(params, Mapping):
        raise InvalidRequest({"params": "Params are an object of names and values."})
    declared = version.spec.params
    refuse_unknown_params(declared, params)
    return {**declared, **with_declared_types(params, declared)}


def refuse_unknown_params(declared: Collection[str], params: Collection[str]) -> None:
    """Raise InvalidRequest on ``params`` for names that are not declared."""
    unknown = sorted(set(params) - set(declared))
    if unknown:
        declared_names = ", ".join(sorted(declared)) or "none"
        raise InvalidRequest(
            {"params": f"Unknown params: {', '.join(unknown)}. Declared params: {declared_names}."}
        )


def params_given(declared: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params that differ from the declared params.

    The other params are left to each asset: another asset, or newer code, may declare the same name
    with a default of its own.
    """
    return {
        name: value
        for name, value in params.items()
        if name not in declared or not _is_same(value, declared[name])
    }


def _is_same(value: Any, declared: Any) -> bool:
    # True equals 1 in Python, but is no number for code that reads the param.
    return type(value) is type(declared) and bool(value == declared)


def checked_strategy(strategy: object, *, default: Strategy) -> Strategy:
    """Return ``"partition"``, ``"range"`` or a number of partitions per run.

    Raises InvalidRequest on ``strategy`` for any other value.
    """
    if strategy is None or strategy == "":
        return default
    if strategy in ("partition", "range"):
        return str(strategy)
    is_number = isinstance(strategy, str) and strategy.isdecimal() and len(strategy) < 8
    number = int(str(strategy)) if is_number else strategy
    if isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= 1_000_000:
        return number
    raise InvalidRequest(
        {
            "strategy": f"{strategy!r} is none of partition, range,"
            " or a number of partitions per run."
        }
    )


def partitions_per_run(strategy: Strategy) -> int | None:
    """Return how many partitions a run has at most; None for a range run, which has all."""
    return None if strategy == "range" else 1 if strategy == "partition" else int(strategy)


def batches(items: Sequence[T], strategy: Strategy) -> list[list[T]]:
    """Cut the requested items into runs, in order: one item each, N each, or all in one."""
    size = partitions_per_run(strategy) or max(len(items), 1)
    return [list(items[start : start + size]) for start in range(0, len(items), size)]


def in_flight_sentence(asset: Asset, held_rows: Sequence[PartitionRow]) -> str:
    """Say which partitions other runs are materializing, the first few by name."""
    keys = ", ".join(row.key for row in islice(held_rows, 3)) + ("…" if len(held_rows) > 3 else "")
    return f"Another run is materializing {asset.name} {keys}.".replace("  ", " ")
