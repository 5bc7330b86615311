"""The canceled partitions of a backfill that no run had claimed."""

from django.db import connection

from backfills_app.models import Backfill

_MOST_RUNS = 10_000
# The latest runs alone: a backfill creates few runs ahead of the runs that may be active.
_CLAIMED = """
WITH latest AS MATERIALIZED (
    SELECT id, state FROM assets_app_run WHERE group_id >= %(group)s AND group_id <= %(group)s
    ORDER BY group_id DESC, id DESC LIMIT %(runs)s
)
SELECT count(*) FROM latest
JOIN backfills_app_backfillpartition AS backfill_partition
    ON backfill_partition.run_id = latest.id AND backfill_partition.state = 'canceled'
WHERE latest.state <> 'succeeded'
"""


def canceled_without_run(backfill: Backfill, canceled_count: int) -> int:
    """Return how many of the canceled partitions no run had claimed: the state of these partitions
    in the asset is unchanged. One query, none without canceled partitions.
    """
    if not canceled_count:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(_CLAIMED, {"group": backfill.group_id, "runs": _MOST_RUNS})
        ((claimed_count,),) = cursor.fetchall()
    return max(canceled_count - int(claimed_count), 0)
