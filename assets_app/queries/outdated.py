"""The statement that finds stale partitions of assets, whatever is read of them.

Staleness is derived (`staleness.py`), so the statement reads rows: first the few upstream
partitions that were materialized again, then the attempts that read earlier versions; and the late
inputs that have come since.

Three more statements express the same idea, since each begins with the rows that are fewest:
`OUTDATED_AMONG` below begins with the given keys of assets, and stops at the first changed input of
each attempt; `_NEWER` in `staleness.py` begins with such keys too, and reads all changed inputs,
which are the reasons; `_OUTDATED` in `backfills_app/services/partitions/staleness.py` begins with
the partitions of one asset in a time, up to a million, and reads these as spans. A change of the
idea is a change of all four.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.db import connection

from assets_app.models import Asset
from assets_app.queries.keys import known_texts
from assets_app.queries.late_inputs import come_since
from assets_app.queries.staleness import stale_among_all

_OUTDATED = """
WITH newer AS MATERIALIZED (
    SELECT DISTINCT read.attempt_id, partition.asset_id
    FROM assets_app_assetpartition AS partition
    JOIN assets_app_attemptinput AS read
        ON read.partition_id = partition.id AND read.version < partition.version
    WHERE partition.version > 1 AND partition.asset_id IN (
        SELECT edge.upstream_id FROM assets_app_assetdependency AS edge
        WHERE edge.downstream_id = ANY(%(assets)s)
    )
), outdated AS (
    SELECT materialization.run_id, materialization.partition_id, materialization.version,
        newer.asset_id AS upstream_id
    FROM newer
    JOIN assets_app_runattempt AS attempt ON attempt.id = newer.attempt_id
    JOIN assets_app_materialization AS materialization
        ON materialization.run_id = attempt.run_id AND materialization.attempt_id = attempt.id
    UNION ALL
    SELECT materialization.run_id, materialization.partition_id, materialization.version,
        late.upstream_id
    FROM assets_app_lateinput AS late
    JOIN assets_app_materialization AS materialization ON materialization.run_id = late.run_id
    JOIN assets_app_assetpartition AS own
        ON own.id = materialization.partition_id AND own.key = late.key
          AND own.version = materialization.version
    WHERE late.reason = 'missing' AND own.asset_id = ANY(%(assets)s) AND EXISTS ({come})
), candidate AS (
    SELECT DISTINCT own.id, own.asset_id, own.key, own.window_start, own.segment,
        run.partition_count > 1 AS is_shared
    FROM outdated
    JOIN assets_app_run AS run ON run.id = outdated.run_id
    JOIN assets_app_assetpartition AS own
        ON own.id = outdated.partition_id AND own.version = outdated.version
       AND own.state = 'materialized'
    JOIN unnest(%(assets)s::bigint[], %(identities)s::text[]) AS requested(id, identity)
        ON requested.id = own.asset_id AND requested.identity = own.identity
    JOIN assets_app_assetdependency AS read_edge
        ON read_edge.downstream_id = own.asset_id AND read_edge.upstream_id = outdated.upstream_id
    WHERE own.held_by_id IS NULL AND {among}
)
{selected} FROM {rows}
"""

# LIMIT and OFFSET keep the subqueries apart: each attempt is examined input by input, up to the
# first newer one. A join of all attempts with all partitions would read all inputs first.
_OUTDATED_AMONG = """
WITH own AS MATERIALIZED (
    SELECT own.asset_id, own.key, materialization.run_id, materialization.attempt_id
    FROM unnest(%(assets)s::bigint[], %(identities)s::text[], %(keys)s::text[])
        AS requested(asset_id, identity, key)
    JOIN assets_app_assetpartition AS own ON own.asset_id = requested.asset_id
        AND own.identity = requested.identity AND own.key = requested.key
        AND own.state = 'materialized' AND own.held_by_id IS NULL
    JOIN assets_app_materialization AS materialization
        ON materialization.partition_id = own.id AND materialization.version = own.version
), outdated AS MATERIALIZED (
    SELECT attempt.asset_id, attempt.attempt_id
    FROM (SELECT DISTINCT asset_id, attempt_id FROM own) AS attempt
    CROSS JOIN LATERAL (
        SELECT FROM assets_app_attemptinput AS read
        CROSS JOIN LATERAL (
            SELECT FROM assets_app_assetpartition AS partition
            JOIN assets_app_assetdependency AS edge ON edge.upstream_id = partition.asset_id
                AND edge.downstream_id = attempt.asset_id
            WHERE partition.id = read.partition_id AND partition.version > read.version
            OFFSET 0
        ) AS newer
        WHERE read.attempt_id = attempt.attempt_id
        LIMIT 1
    ) AS read
)
SELECT own.asset_id, run.partition_count > 1 AS is_shared, count(*), array_agg(own.key)
FROM own
JOIN assets_app_run AS run ON run.id = own.run_id
WHERE (own.asset_id, own.attempt_id) IN (SELECT asset_id, attempt_id FROM outdated)
   OR EXISTS (
    SELECT FROM assets_app_lateinput AS late
    JOIN assets_app_assetdependency AS edge
        ON edge.upstream_id = late.upstream_id AND edge.downstream_id = own.asset_id
    WHERE late.run_id = own.run_id AND late.key = own.key AND late.reason = 'missing'
      AND EXISTS ({come})
)
GROUP BY 1, 2
"""
OUTDATED_AMONG = _OUTDATED_AMONG.format(come=come_since("own.attempt_id"))
"""The statement that selects the fields of ``candidates_by_asset`` among the given ``keys``, each
with its asset in ``assets`` and its identity in ``identities``: however many inputs have changed,
the first changed input of an attempt is enough.
"""


def outdated_statement(selected: str, *, among: str = "true", rows: str = "candidate") -> str:
    """Return the statement that reads ``selected`` of ``candidate``: the partitions that an attempt
    with a newer input made, with ``is_shared`` for partitions of runs of several, of which perhaps
    only some are stale.

    The parameters are the lists ``assets`` (ids) and ``identities``. ``among`` is a condition on
    the partitions ``own``; ``rows`` is the rest of the statement, from its FROM on.
    """
    come = come_since("materialization.attempt_id")
    return _OUTDATED.format(come=come, selected=selected, among=among, rows=rows)


class Candidates(NamedTuple):
    """Partitions of one asset made by attempts with a newer input, all of runs of one partition, or
    all of runs of several, of which perhaps only some are stale. ``keys`` are the first of
    ``number``.
    """

    is_shared: bool
    number: int
    keys: Sequence[str]


def candidates_by_asset(
    statement: str, parameters: Mapping[str, Any]
) -> dict[int, list[Candidates]]:
    """Return the candidates by asset id, by a statement that selects the id, and the fields of
    ``Candidates`` in order.
    """
    by_asset: dict[int, list[Candidates]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        for asset_id, *columns in cursor.fetchall():
            by_asset[asset_id].append(Candidates(*columns))
    return by_asset


def stale_candidates(
    all_candidates: Mapping[Asset, Sequence[Candidates]],
) -> dict[int, frozenset[str]]:
    """Return the keys of the stale partitions among the keys of candidates, by asset id, without
    keys that the definition no longer has. The mappings decide for runs of several partitions: two
    statements for all assets.
    """
    stale_keys: dict[int, frozenset[str]] = {}
    shared_keys: dict[Asset, list[str]] = {}
    for asset, candidates in all_candidates.items():
        stale_keys[asset.pk] = frozenset(_known_keys(asset, candidates, is_shared=False))
        if keys := _known_keys(asset, candidates, is_shared=True):
            shared_keys[asset] = keys
    if shared_keys:
        for asset_id, stale_shared_keys in stale_among_all(shared_keys).items():
            stale_keys[asset_id] |= stale_shared_keys
    return stale_keys


def _known_keys(
    asset: Asset, all_candidates: Sequence[Candidates], *, is_shared: bool
) -> list[str]:
    texts = [
        key
        for candidates in all_candidates
        if candidates.is_shared == is_shared
        for key in candidates.keys
    ]
    return known_texts(asset.definition, texts)
