"""Retries and re-runs: another attempt at an ended run, or a new run of the same partitions."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.db.models.functions import Now

from accounts_app import audit, policy
from accounts_app.models import User
from assets_app.execution.queue.claims import RunSpec, claim
from assets_app.execution.queue.messages import nudge_dispatch
from assets_app.execution.queue.transitions import is_terminal, move_all
from assets_app.execution.request.patience import patient_transaction
from assets_app.execution.request.reclaiming import (
    KEYS_NAMED,
    delete_discovered,
    in_flight,
    reclaim,
    refusals_of_held,
    refusals_of_removed,
    refusals_of_unwritten,
    rows_of,
    searches_among,
)
from assets_app.execution.request.requests import (
    refuse_removed,
    refuse_unknown_params,
    require_producer,
)
from assets_app.models import (
    AwaitedPartition,
    GroupKind,
    ProducerVersion,
    Queue,
    Run,
    RunGroup,
    RunState,
    Target,
    Trigger,
)
from assets_app.signals import retry_requested, runs_retried
from slicewise_server.web.request_errors import ConflictingRequest, InvalidRequest

RETRYABLE_STATES = (RunState.FAILED, RunState.CANCELED, RunState.SKIPPED)


class Code(StrEnum):
    """Which version of the code runs: the version of the run, or the version in force now."""

    SAME = "same"
    NEWEST = "newest"


@dataclass(slots=True)
class Retried:
    """The runs of a request that were queued again, and the reasons why others were refused."""

    runs: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)


def retry_run(run: Run, *, code: str = Code.SAME, user: User) -> Run:
    """Queue a failed, canceled or skipped run for another attempt, with its history kept.

    All partitions that the run has not published are claimed again. Raises ConflictingRequest if
    another run is materializing such a partition, the key of such a partition was removed, the
    newest code no longer writes an asset of the run, or the run cannot be retried; InvalidRequest
    on ``code``; PermissionDenied.
    """
    retried = retry_runs([run.pk], code=code, user=user, allow_none=True)
    if run.pk in retried.refused:
        raise ConflictingRequest({"": retried.refused[run.pk]})
    run.refresh_from_db()
    return run


def retry_runs(
    run_ids: Collection[int], *, code: str = Code.SAME, user: User, allow_none: bool = False
) -> Retried:
    """Retry the runs that can be retried: see `retry_run`.

    Raises ConflictingRequest if no run can be retried, unless ``allow_none``.
    """
    policy.require(user, policy.Action.MATERIALIZE)
    code_choice = checked_code(code)
    _refuse_too_many(run_ids)
    with patient_transaction(""):
        retried = _retry(run_ids, code_choice, user)
        if not retried.runs and not allow_none:
            reasons = list(retried.refused.values()) or [
                "No run to retry: no run of the group has failed."
            ]
            raise ConflictingRequest({"": reasons[: KEYS_NAMED + 1]})
    return retried


def retry_group(group: RunGroup, *, code: str = Code.SAME, user: User) -> Retried:
    """Retry all runs of a request or of a schedule that have failed: see `retry_runs`.

    Canceled runs were canceled by a person: a person retries such runs by number.
    """
    failed = group.runs.filter(state=RunState.FAILED).order_by("id")
    return retry_runs(list(failed.values_list("id", flat=True)), code=code, user=user)


def rerun(run: Run, *, code: str = Code.SAME, user: User) -> RunGroup:
    """Queue a new run of an ended run's partitions and params; the ended run stays unchanged.

    Partitions that another run is materializing are left out and named in the group, as in a
    request; if all partitions are left out, the request conflicts. Raises the errors of
    `retry_run`.
    """
    policy.require(user, policy.Action.MATERIALIZE)
    code_choice = checked_code(code)
    run = _with_code(Run.objects.filter(pk=run.pk)).get()
    if not is_terminal(run.state):
        raise ConflictingRequest({"": _not_ended(run)})
    version, params = _version_and_params(run, code_choice)
    rows, is_search = rows_of(run)
    with patient_transaction(""):
        group = RunGroup.objects.create(
            kind=GroupKind.REQUEST,
            label=f"{run.asset.name} {run.selection}".strip()[:300],
            queue=Queue.SCHEDULED,
            created_by=user,
        )
        run_terms = RunSpec(
            target=Target(run.asset, is_discovering=is_search),
            producer_version=version,
            group=group,
            trigger=Trigger.MANUAL,
            params=params,
            requested_by=user,
        )
        claimed, held_rows = claim(run_terms, [rows])
        refuse_removed(run.asset, rows, claimed, held_rows, field="")
        if not claimed:
            raise ConflictingRequest({"": in_flight(run, [row.key for row in held_rows])})
        if held_rows:
            group.in_flight = [row.key for row in held_rows]
            group.save(update_fields=["in_flight"])
        detail = {"code": code_choice.value, "group": group.pk, "partitions": len(claimed)}
        audit.record(user, "run again", "run", str(run.pk), detail)
        nudge_dispatch()
    return group


def checked_code(code: str) -> Code:
    """Return the code for a word; raise InvalidRequest on ``code`` for an unknown word."""
    try:
        return Code(code)
    except ValueError:
        raise InvalidRequest({"code": f"{code!r} is none of {', '.join(Code)}."}) from None


def can_retry(run: Run) -> bool:
    """Return whether a retry would be considered: the run has ended without success."""
    return run.state in RETRYABLE_STATES


def _refuse_too_many(run_ids: Collection[int]) -> None:
    most = settings.MAX_PARTITIONS_PER_REQUEST
    if len(run_ids) > most:
        raise InvalidRequest(
            {
                "runs": f"{len(run_ids):,} runs are more than one request may name"
                f" ({most:,}, setting MAX_PARTITIONS_PER_REQUEST)."
            }
        )


def _retry(run_ids: Collection[int], code: Code, user: User) -> Retried:
    # Runs are locked before partitions: the order in which the end of a run locks rows. The code is
    # read under the lock: another retry may have changed the version while the query waited.
    locked = Run.objects.select_for_update().filter(pk__in=run_ids).order_by("id")
    locked_ids = list(locked.values_list("pk", flat=True))
    runs = {run.pk: run for run in _with_code(Run.objects.filter(pk__in=locked_ids).order_by("id"))}
    retried = Retried()
    retried.refused = {pk: f"There is no run {pk}." for pk in run_ids if pk not in runs}
    renewed: dict[int, tuple[ProducerVersion, Mapping[str, Any]]] = {}
    for run in runs.values():
        try:
            renewed[run.pk] = _version_for_retry(run, code)
        except InvalidRequest as refused:
            retried.refused[run.pk] = str(refused)
    versions = {pk: version for pk, (version, _) in renewed.items()}
    retried.refused |= refusals_of_unwritten(runs, versions)
    retried.refused |= _objections(renewed)
    searches = searches_among(renewed)
    for refusals in (refusals_of_removed, refusals_of_held):
        unopposed = [runs[pk] for pk in renewed if pk not in retried.refused]
        retried.refused |= refusals(unopposed, searches)
    retried.runs = [pk for pk in renewed if pk not in retried.refused]
    delete_discovered([pk for pk in retried.runs if pk in searches])
    _queue([runs[pk] for pk in retried.runs])
    audit.record_many(
        user, "retry", "run", {str(pk): _detail(runs[pk], renewed[pk][0]) for pk in retried.runs}
    )
    _store_versions(runs, {pk: renewed[pk] for pk in retried.runs})
    if retried.runs:
        runs_retried.send(sender=None, run_ids=retried.runs, user=user)
        nudge_dispatch()
    return retried


def _objections(run_ids: Iterable[int]) -> dict[int, str]:
    """Return why runs cannot be retried, by run, as the receivers of `retry_requested` answer."""
    objections: dict[int, str] = {}
    answer: Any
    for _, answer in retry_requested.send(sender=None, run_ids=list(run_ids)):
        objections |= answer or {}
    return objections


def _with_code(runs: Any) -> Any:
    """Return the runs with both versions, their own and the one in force, without sources."""
    named = ("asset__partition_definition", "asset__producer__current_version")
    runs_with_code = runs.select_related("group", "producer_version", *named)
    return runs_with_code.defer(
        "producer_version__source",
        "asset__producer__current_version__source",
        "asset__partition_definition__spec",
    )


def _version_for_retry(run: Run, code: Code) -> tuple[ProducerVersion, Mapping[str, Any]]:
    """Return version and params of the retry; raise an error if the run cannot be retried.

    The error is a ConflictingRequest or an InvalidRequest.
    """
    if run.state == RunState.SUCCEEDED:
        raise ConflictingRequest(
            {
                "": f"Run {run.pk} has succeeded: to materialize the partitions again,"
                " re-run the run."
            }
        )
    if run.state not in RETRYABLE_STATES:
        raise ConflictingRequest({"": _not_ended(run)})
    return _version_and_params(run, code)


def _version_and_params(run: Run, code: Code) -> tuple[ProducerVersion, Mapping[str, Any]]:
    newest = require_producer(run.asset)
    if code is Code.SAME:
        return run.producer_version, run.params
    # The values of the run are no request: newer code may declare a default of another type.
    refuse_unknown_params(newest.spec.params, run.params)
    return newest, {**newest.spec.params, **run.params}


def _queue(runs: Sequence[Run]) -> None:
    """Queue the runs as if never tried: failures are counted anew, attempts go on being numbered.

    The rows are locked, so each run is in the state that was read.
    """
    if not runs:
        return
    run_ids = [run.pk for run in runs]
    reclaim(run_ids)
    # A retried run goes ahead without the partitions that the run has waited for.
    AwaitedPartition.objects.filter(run__in=run_ids).delete()
    anew: dict[str, Any] = {
        "queued_at": Now(), "not_before": None, "dispatched_at": None,
        "started_at": None, "ended_at": None, "error": "", "error_kind": "", "skip_reason": "",
        "code_failures": 0, "platform_failures": 0, "lost_attempts": 0,
    }  # fmt: skip
    for state in sorted({run.state for run in runs}):
        move_all(run_ids, RunState(state), RunState.QUEUED, **anew)


def _store_versions(
    runs: Mapping[int, Run], renewed: Mapping[int, tuple[ProducerVersion, Mapping[str, Any]]]
) -> None:
    changed = []
    for pk, (version, params) in renewed.items():
        run = runs[pk]
        if run.producer_version_id != version.pk:
            run.producer_version, run.params = version, dict(params)
            changed.append(run)
    Run.objects.bulk_update(changed, ["producer_version", "params"], batch_size=1000)


def _detail(run: Run, version: ProducerVersion) -> dict[str, Any]:
    """Return the detail for the audit trail: the old state, and both versions if they differ."""
    detail: dict[str, Any] = {"asset": run.asset.name, "was": run.state}
    if version.pk != run.producer_version_id:
        detail["code before"] = run.producer_version.digest[:12]
        detail["code now"] = version.digest[:12]
    return detail


def _not_ended(run: Run) -> str:
    return f"Run {run.pk} is {run.get_state_display().lower()}: it has not ended yet."
