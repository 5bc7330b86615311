"""Writers of events, called inside the transaction of the change."""

import re
from collections.abc import Sequence

from django.db import connection

from assets_app.models import Asset, ScheduleTruncation
from assets_app.queries.prepared_statements import prepared_cursor
from backfills_app.models import Backfill, BackfillState
from slicewise_server.events.models import Event, EventKind
from slicewise_server.events.outlets import JOIN_OUTLETS
from slicewise_server.events.partial_failures import JOIN_PARTIAL_FAILURES
from slicewise_server.events.reported_failures import open_failures, write_recoveries

ERROR_LENGTH = 2_000
MOST_ASSETS = 100
"""The number of assets that the event of a backfill names."""
# The spaces stay in the parts.
_SPACES = re.compile(r"(\s)")
_BACKFILL_KINDS = {
    BackfillState.SUCCEEDED: EventKind.BACKFILL_SUCCEEDED,
    BackfillState.PARTIALLY_FAILED: EventKind.BACKFILL_FAILED,
    BackfillState.FAILED: EventKind.BACKFILL_FAILED,
    BackfillState.CANCELED: EventKind.BACKFILL_CANCELED,
}

# Failed runs, and validations that did not pass, one event for each run and severity. An event of a
# function that makes several assets names all of them. Errors are cut like `shortened` cuts them.
_ENDED_RUNS = f"""
WITH ended AS MATERIALIZED (
    SELECT run.id, run.asset_id, run.state, run.trigger, run.error, run.error_kind, run.selection,
           run.partition_count, asset.name AS asset, backfill.id AS backfill_id,
           coalesce(together.detail, '{{}}') AS outlets,
           coalesce(partial.detail, '{{}}') AS partial_failure
    FROM assets_app_run AS run
    JOIN assets_app_asset AS asset ON asset.id = run.asset_id
    {JOIN_OUTLETS}
    {JOIN_PARTIAL_FAILURES}
    LEFT JOIN backfills_app_backfill AS backfill ON backfill.group_id = run.group_id
    WHERE run.id = ANY(%(runs)s::bigint[]) AND run.state IN ('failed', 'succeeded')
), failed_validations AS (
    SELECT attempt.run_id, result.severity, jsonb_agg(DISTINCT result.name) AS names,
           min(result.message) AS message
    FROM ended
    JOIN assets_app_runattempt AS attempt ON attempt.run_id = ended.id
    JOIN assets_app_validationresult AS result ON result.attempt_id = attempt.id
    WHERE NOT result.passed AND attempt.number = (
        SELECT max(latest.number) FROM assets_app_runattempt AS latest
        WHERE latest.run_id = ended.id
    )
    GROUP BY attempt.run_id, result.severity
)
INSERT INTO events_event (kind, asset, run_id, backfill_id, error, detail)
SELECT 'run_failed', asset, id, backfill_id, CASE WHEN length(error) <= %(length)s THEN error
           ELSE coalesce(substring(left(error, %(length)s) FROM '^.*[[:space:]]'), '') || '…' END,
       jsonb_build_object('trigger', trigger, 'error_kind', error_kind,
                          'partitions', partition_count, 'selection', left(selection, 200))
       || partial_failure || outlets
FROM ended WHERE state = 'failed'
UNION ALL
SELECT CASE severity WHEN 'error' THEN 'validation_failed' ELSE 'validation_warned' END,
       asset, id, backfill_id, CASE WHEN length(message) <= %(length)s THEN message
           ELSE coalesce(substring(left(message, %(length)s) FROM '^.*[[:space:]]'), '') || '…' END,
       jsonb_build_object('validations', names) || outlets
FROM failed_validations JOIN ended ON ended.id = failed_validations.run_id
"""  # noqa: S608  (parts of the statement that have one home)


# The times in the form of the API, to the second.
_OVERDUE = """
INSERT INTO events_event (kind, asset, error, detail)
SELECT 'partition_overdue', asset.name, '', jsonb_build_object(
    'partition', late.key,
    'window_end', to_char(late.window_end AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
    'overdue_at', to_char(late.overdue_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
FROM assets_app_latepartition AS late
JOIN assets_app_asset AS asset ON asset.id = late.asset_id
WHERE late.id = ANY(%s) ORDER BY late.overdue_at, asset.name, late.window_start, late.key
"""


def shortened(text: str) -> str:
    """Return the begin of a long text, without the word that the cut meets.

    Secrets are masked when the text is read: half an address no longer looks like an address, and
    its password would be shown.
    """
    if len(text) <= ERROR_LENGTH:
        return text
    *whole_words, _cut_word = _SPACES.split(text[:ERROR_LENGTH])
    return "".join(whole_words) + "…"


def write_ended_runs(run_ids: Sequence[int]) -> None:
    """Write the events of runs that have just ended: two or three statements for all runs."""
    with prepared_cursor(len(run_ids)) as cursor:
        cursor.execute(_ENDED_RUNS, {"runs": list(run_ids), "length": ERROR_LENGTH})
        has_events = cursor.rowcount > 0
    if has_events:
        open_failures(run_ids)
    write_recoveries(run_ids)


def write_ended_backfill(backfill: Backfill) -> None:
    """Write the event of a backfill that has just ended, with its counts."""
    names = ("total", "succeeded", "failed", "canceled", "skipped")
    counts = dict.fromkeys(names, 0)
    for values in backfill.assets.values(*names):
        counts = {name: counts[name] + values[name] for name in names}
    # Rules of alerts match by these names; assets with failures are named first.
    assets = backfill.assets.order_by("-failed", "position", "id")
    asset_names = list(assets.values_list("asset__name", flat=True)[:MOST_ASSETS])
    Event.objects.create(
        kind=_BACKFILL_KINDS[BackfillState(backfill.state)],
        asset=backfill.asset.name if backfill.is_of_one else "",
        backfill_id=backfill.pk,
        error=shortened(backfill.error),
        detail={
            "name": backfill.name,
            "state": backfill.state,
            "partitions": counts,
            "assets": asset_names,
        },
    )


def write_bundle(name: str, *, errors: Sequence[str]) -> None:
    """Write that a bundle has new import errors or, without errors, no more errors."""
    kind = EventKind.BUNDLE_BROKEN if errors else EventKind.BUNDLE_MENDED
    text = shortened("\n".join(errors))
    Event.objects.create(kind=kind, bundle=name, error=text, detail={"errors": len(errors)})


def write_overdue(late_ids: Sequence[int]) -> None:
    """Write that these late partitions are overdue: one statement, and one event for each."""
    with connection.cursor() as cursor:
        cursor.execute(_OVERDUE, [list(late_ids)])


def write_truncation(truncation: ScheduleTruncation) -> None:
    """Write that one tick or write made more partitions due than may be queued."""
    outlets = Asset.objects.filter(producer=truncation.asset.producer_id, active=True)
    outlets = outlets.exclude(producer=None)
    names = list(outlets.order_by("name").values_list("name", flat=True))
    Event.objects.create(
        kind=EventKind.SCHEDULE_TRUNCATED,
        asset=truncation.asset.name,
        detail={
            "partitions": truncation.count,
            "queued": truncation.queued,
            "first": truncation.first,
            "last": truncation.last,
            **({"assets": names} if len(names) > 1 else {}),
        },
    )
