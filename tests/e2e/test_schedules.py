"""Schedules on the real stack: by time, by assets, and layer after layer."""

import time
from itertools import pairwise

import psycopg
import pytest

from slicewise_server.stack.demo.client import Client
from tests.e2e.conftest import eventually, settle

_MADE = """
SELECT partition.key, run.trigger, materialization.version, partition.window_start,
    partition.window_end,
    materialization.created_at,
       run.started_at, run.queued_at
FROM assets_app_materialization AS materialization
JOIN assets_app_assetpartition AS partition ON partition.id = materialization.partition_id
JOIN assets_app_asset AS asset ON asset.id = partition.asset_id
JOIN assets_app_run AS run ON run.id = materialization.run_id
WHERE asset.name = %s ORDER BY partition.window_start, materialization.id
"""


@pytest.fixture
def playing(api: Client, database: psycopg.Connection) -> None:
    """Let the pulse beat for a dozen seconds, and wait for all assets that follow."""
    api.post("/assets/pulse/unpause/")
    try:
        eventually(lambda: len(database.execute(_MADE, ["bars"]).fetchall()) >= 3)
    finally:
        api.post("/assets/pulse/pause/")
    settle(database)


def test_beats_bars_and_score_follow_one_another(
    playing: None, database: psycopg.Connection
) -> None:
    pulses = database.execute(_MADE, ["pulse"]).fetchall()
    bars = database.execute(_MADE, ["bars"]).fetchall()
    starts = [row[3] for row in pulses]
    assert {row[1] for row in pulses} == {"schedule"}
    assert all((b - a).total_seconds() == 1 for a, b in pairwise(starts))
    assert {row[2] for row in pulses} == {1}
    assert {row[1] for row in bars} == {"upstream"}
    assert {row[2] for row in bars} == {1}
    for _, _, _, start, end, made_at, *_ in bars:
        beats = [row for row in pulses if start <= row[3] < end]
        assert len(beats) == 4
        assert max(row[5] for row in beats) < made_at
    scores = database.execute(_MADE, ["score"]).fetchall()
    assert 1 <= len(scores) <= len(bars)
    assert scores[-1][5] > bars[-1][5]


def test_a_paused_schedule_rests(playing: None, database: psycopg.Connection) -> None:
    before = len(database.execute(_MADE, ["pulse"]).fetchall())
    time.sleep(3)
    assert len(database.execute(_MADE, ["pulse"]).fetchall()) == before
