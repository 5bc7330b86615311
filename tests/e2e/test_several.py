"""One backfill of several assets on real workers."""

import psycopg

from slicewise_server.stack.demo.client import Client
from tests.e2e.conftest import ended

_MADE = """
SELECT asset.name, partition.key, materialization.id
FROM assets_app_materialization AS materialization
JOIN assets_app_assetpartition AS partition ON partition.id = materialization.partition_id
JOIN assets_app_asset AS asset ON asset.id = partition.asset_id
WHERE asset.name LIKE 'several%' ORDER BY materialization.id
"""


def test_missing_upstream_partitions_are_materialized_before_their_downstream(
    api: Client, database: psycopg.Connection
) -> None:
    first = api.post(
        "/backfills/", asset="several_hours", start="2024-01-02", end="2024-01-02", strategy="range"
    )
    assert ended(api, f"/backfills/{first['id']}/")["state"] == "succeeded"
    request = {
        "asset": "several_total",
        "start": "2024-01-01",
        "end": "2024-01-02",
        "upstream": True,
    }
    plan = api.post("/backfills/preview/", **request)
    fields = ("asset", "layer", "to_materialize")
    assert [tuple(asset[field] for field in fields) for asset in plan["assets"]] == [
        ("several_hours", 1, 24), ("several_days", 2, 2), ("several_total", 3, 1),
    ]  # fmt: skip
    backfill = api.post("/backfills/", **request)
    ended_backfill = ended(api, f"/backfills/{backfill['id']}/")
    assert ended_backfill["state"] == "succeeded"
    counts = {
        asset["asset"]: (asset["succeeded"], asset["skipped"]) for asset in ended_backfill["assets"]
    }
    assert counts == {"several_hours": (24, 24), "several_days": (2, 0), "several_total": (1, 0)}
    numbers = {(name, key): number for name, key, number in database.execute(_MADE).fetchall()}
    assert len(numbers) == 48 + 2 + 1
    for day in ("2024-01-01", "2024-01-02"):
        hours = [instant for (name, key), instant in numbers.items() if key.startswith(f"{day}T")]
        assert len(hours) == 24
        assert max(hours) < numbers["several_days", day] < max(numbers.values())
    assert list(numbers)[-1][0] == "several_total"
    tagged = api.post("/backfills/preview/", asset_tag="several", start="2024-01", end="2024-01")
    assert [asset["existing"] for asset in tagged["assets"]] == [48, 2]
