"""Writers of events, called inside the transaction of the change."""

import re
from collections.abc import Sequence

from django.db import connection

from assets_app.models import LeftOut
from backfills_app.models import Backfill, BackfillState
from slicewise_server.events.models import Event, EventKind

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

# Failed runs; runs of a schedule or of a person that succeed where the asset's last run of these
# kinds had failed; and validations that did not pass, one event for each run and severity. Of the
# asset's earlier runs a hundred are read: the cost must not grow with a backfill's million runs.
# Errors are cut like `shortened` cuts them.
_ENDED_RUNS = """
WITH ended AS MATERIALIZED (
    SELECT run.id, run.asset_id, run.state, run.trigger, run.error, run.error_kind, run.selection,
           run.partition_count, asset.name AS asset, backfill.id AS backfill_id
    FROM assets_app_run AS run
    JOIN assets_app_asset AS asset ON asset.id = run.asset_id
    LEFT JOIN backfills_app_backfill AS backfill ON backfill.group_id = run.group_id
    WHERE run.id = ANY(%(runs)s) AND run.state IN ('failed', 'succeeded')
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
FROM ended WHERE state = 'failed'
UNION ALL
SELECT 'run_recovered', asset, id, backfill_id, '',
       jsonb_build_object('trigger', trigger, 'partitions', partition_count,
                          'selection', left(selection, 200))
FROM ended
WHERE state = 'succeeded' AND trigger <> 'backfill' AND (
    SELECT earlier.state FROM (
        SELECT run.id, run.trigger, run.state FROM assets_app_run AS run
        WHERE run.asset_id = ended.asset_id AND run.id < ended.id
        ORDER BY run.id DESC LIMIT 100
    ) AS earlier
    WHERE earlier.trigger <> 'backfill' AND earlier.state IN ('failed', 'succeeded')
    ORDER BY earlier.id DESC LIMIT 1
) = 'failed'
UNION ALL
SELECT CASE severity WHEN 'error' THEN 'validation_failed' ELSE 'validation_warned' END,
       asset, id, backfill_id, CASE WHEN length(message) <= %(length)s THEN message
           ELSE coalesce(substring(left(message, %(length)s) FROM '^.*[[:space:]]'), '') || '…' END,
       jsonb_build_object('validations', names)
FROM failed_validations JOIN ended ON ended.id = failed_validations.run_id
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
    """Write the events of runs that have just ended: one statement for all runs."""
    with connection.cursor() as cursor:
        cursor.execute(_ENDED_RUNS, {"runs": list(run_ids), "length": ERROR_LENGTH})


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
    """Write that a bundle has new import errors or, without errors, that the bundle loads again."""
    kind = EventKind.BUNDLE_BROKEN if errors else EventKind.BUNDLE_MENDED
    text = shortened("\n".join(errors))
    Event.objects.create(kind=kind, bundle=name, error=text, detail={"errors": len(errors)})


def write_left_out(left_out: LeftOut) -> None:
    """Write that a schedule left out partitions beyond the limit of one tick or write."""
    Event.objects.create(
        kind=EventKind.SCHEDULE_TRUNCATED,
        asset=left_out.asset.name,
        detail={
            "partitions": left_out.count,
            "queued": left_out.queued,
            "first": left_out.first,
            "last": left_out.last,
        },
    )
