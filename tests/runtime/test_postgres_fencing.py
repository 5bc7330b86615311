"""Two workers at one publication to a table: the late worker is stopped before each statement."""

from dataclasses import replace
from functools import partial
from itertools import count

import psycopg
import pytest

from slicewise.io import Writer
from slicewise.storage import StagingLostError, TryAgainError
from tests.runtime.postgres_schema import PATHS, Shop
from tests.runtime.stepped_worker import SteppedWorker, asking_first

MODES = pytest.mark.parametrize("mode", ["replace", "append"])
DAYS = ("mon", "tue")
ROWS = [("mon", 2), ("tue", 2)]


@pytest.fixture(autouse=True)
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask workers before each statement."""
    monkeypatch.setattr(psycopg.Connection, "execute", asking_first(psycopg.Connection.execute))


def check(shop: Shop, writer: Writer, mode: str) -> None:
    pieces = [{"key": key, "path": PATHS[key]} for key in DAYS]
    shop.storage(mode).check("", pieces, writer)


@MODES
def test_a_late_worker_changes_nothing_of_newer_data(shop: Shop, mode: str) -> None:
    for step in count(1, 2):
        table = f"sales{step}"
        run = 100 * step
        late = shop.stage(run, ROWS)
        worker = SteppedWorker(partial(shop.publish, late, *DAYS, mode=mode, table=table), step)
        is_late = worker.reach()
        shop.publish(replace(late, fence=2), *DAYS, mode=mode, table=table)
        shop.write(run + 1, [("mon", 3)], "mon", mode=mode, table=table)
        worker.end()
        older = [("mon", 2)] if mode == "append" else []
        assert shop.rows(table=table) == [*older, ("mon", 3), ("tue", 2)], step
        if not is_late:
            break
        assert isinstance(worker.error, StagingLostError | TryAgainError | None), step
    assert step > 5


@MODES
def test_a_late_worker_beside_its_successor_neither_stops_it_nor_changes_its_data(
    shop: Shop, mode: str
) -> None:
    """The late worker goes on while its successor is stopped, and the successor goes on last."""
    older = [("mon", 1)]
    for late_step in count(1, 2):
        # Every third step, another third for each step of the late worker: all pairs take a minute.
        for step in count(1 + late_step // 2 % 3, 3):
            case, run = (late_step, step), 1000 * late_step + 10 * step
            table = f"sales{late_step}_{step}"
            shop.write(run, older, "mon", mode=mode, table=table)
            staged = shop.stage(run + 1, ROWS)
            publish = partial(shop.publish, mode=mode, table=table)
            late = SteppedWorker(partial(publish, staged, *DAYS), late_step)
            is_late = late.reach()
            successor = SteppedWorker(partial(publish, replace(staged, fence=2), *DAYS), step)
            is_paused = successor.reach()
            late.go_on()
            shop.wait_for_end_or_lock(late)
            successor.end()
            late.end()
            assert successor.error is None, case
            assert isinstance(late.error, StagingLostError | TryAgainError | None), case
            expected = sorted([*older, *ROWS]) if mode == "append" else ROWS
            assert shop.rows(table=table) == expected, case
            if not is_paused:
                break
        if not is_late:
            break
    assert late_step > 5


@MODES
def test_a_publication_that_is_given_up_is_not_finished_by_a_late_worker(
    shop: Shop, mode: str
) -> None:
    shop.write(1, [("mon", 1)], "mon", mode=mode)
    for step in count(1, 2):
        late = shop.stage(100 * step, ROWS)
        worker = SteppedWorker(partial(shop.publish, late, *DAYS, mode=mode), step)
        is_late = worker.reach()
        check(shop, replace(late, fence=2), mode)
        recorded = shop.storage(mode).published(list(PATHS.values()), late)
        worker.end()
        shop.storage(mode).discard(late)
        if not is_late:
            break
        assert recorded == [], step
        assert shop.rows() == [("mon", 1)], step
        assert isinstance(worker.error, StagingLostError | TryAgainError), step
    assert step > 5


def test_a_late_worker_is_told_and_does_not_end_the_session_of_its_successor(shop: Shop) -> None:
    late = shop.stage(1, ROWS)
    successor = SteppedWorker(partial(shop.publish, replace(late, fence=3), *DAYS), 8)
    assert successor.reach()
    with pytest.raises((StagingLostError, TryAgainError)):
        check(shop, replace(late, fence=2), "replace")
    successor.end()
    assert successor.error is None
    assert shop.rows() == ROWS


@pytest.mark.parametrize("single_partition", [False, True])
def test_a_table_that_is_made_anew_under_its_first_name_stops_nobody(
    shop: Shop, single_partition: bool
) -> None:
    def stage(rows: list[tuple[str, int]]) -> Writer:
        return shop.stage(1, rows, separate_key="mon" if single_partition else "")

    late = stage([("mon", 2)])
    pieces = [{"key": "mon", "path": PATHS["mon"]}]
    shop.storage().check("", pieces, replace(late, fence=2))
    stage([("mon", 9)])
    shop.publish(replace(late, fence=3), "mon")
    assert shop.rows() == [("mon", 2)]
    assert shop.tables() == {"sales", "_slicewise_published"}


def test_discarding_leaves_what_another_asset_of_the_attempt_has_staged(shop: Shop) -> None:
    own_writer, other_writer = shop.stage(1, ROWS), shop.stage(1, ROWS, attempt="1-a.1")
    shop.storage().discard(own_writer)
    assert shop.tables() == {shop.storage().staging(other_writer, partitioned=True)}
