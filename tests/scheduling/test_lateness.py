"""Schedules with `After` and `Fresh`: the moments of late partitions, and late inputs that come."""

from datetime import timedelta

import pytest

from accounts_app.models import User
from assets_app.models import (
    Asset,
    AssetPartition,
    Gateway,
    LateInput,
    Run,
    Trigger,
)
from slicewise import Latest, PartitionByInterval
from tests.factories import asset
from tests.scheduling.beats import look, written
from tests.scheduling.scheduled_assets import (
    after,
    all_of,
    any_of,
    at,
    by,
    cron,
    fail,
    fresh,
    make_all,
    scheduled,
    waiting,
)

DAILY = PartitionByInterval("@daily", start="2024-01-01")
MONTHLY = PartitionByInterval("@monthly", start="2024-01-01")
BEGAN = at(2024, 7, 1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
pytestmark = pytest.mark.django_db


def tolerant(*, remake: bool = False) -> Asset:
    """Declare an asset that waits six hours for `b`."""
    a_and_b = all_of(by("a"), by("b"))
    alone = all_of(by("a"), after(6 * HOUR, remake=remake))
    return scheduled("report", any_of(a_and_b, alone), DAILY, since=BEGAN)


# ---------------------------------------------------------------- After


def test_after_alone_makes_each_window_so_long_after_its_end(gateway: Gateway) -> None:
    late = scheduled("late", after(6 * HOUR), DAILY, since=BEGAN)
    look(at(2024, 7, 2, 5, 59, 59))
    assert waiting(late) == []
    look(at(2024, 7, 2, 6))
    assert waiting(late) == ["2024-07-01"]
    assert Run.objects.get(asset=late).trigger == Trigger.SCHEDULE
    make_all(late, gateway)
    look(at(2024, 7, 3, 5))
    assert waiting(late) == []
    look(at(2024, 7, 5, 7))
    assert [run.selection for run in Run.objects.filter(asset=late).order_by("id")] == [
        "2024-07-01", "2024-07-02", "2024-07-03", "2024-07-04",
    ]  # fmt: skip


def test_both_inputs_in_time_make_it_at_once(alice: User, gateway: Gateway) -> None:
    a, b = asset("a", DAILY), asset("b", DAILY)
    report = tolerant()
    written(a, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    assert waiting(report) == []
    written(b, "2024-07-01", at(2024, 7, 2, 2), gateway, alice)
    assert waiting(report) == ["2024-07-01"]
    make_all(report, gateway)
    look(at(2024, 7, 2, 7))
    assert waiting(report) == []
    assert not LateInput.objects.exists()


def test_six_hours_later_it_is_made_without_the_missing_input(
    alice: User, gateway: Gateway
) -> None:
    a, b = asset("a", DAILY), asset("b", DAILY)
    report = tolerant()
    written(a, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    look(at(2024, 7, 2, 5, 59))
    assert waiting(report) == []
    look(at(2024, 7, 2, 6))
    assert waiting(report) == ["2024-07-01"]
    run = Run.objects.get(asset=report)
    late = LateInput.objects.get()
    assert (late.run, late.key, late.upstream) == (run, "2024-07-01", b)
    assert (late.reason, late.effect, late.missing, late.keys) == (
        "missing", "stale", 1, ["2024-07-01"],
    )  # fmt: skip


def test_without_remake_the_late_input_makes_nothing_due(alice: User, gateway: Gateway) -> None:
    a, b = asset("a", DAILY), asset("b", DAILY)
    report = tolerant()
    written(a, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    look(at(2024, 7, 2, 6))
    make_all(report, gateway)
    written(b, "2024-07-01", at(2024, 7, 2, 8), gateway, alice)
    assert waiting(report) == []
    # A new version of what was read makes the partition again, with the late input.
    written(a, "2024-07-01", at(2024, 7, 2, 9), gateway, alice)
    assert waiting(report) == ["2024-07-01"]
    make_all(report, gateway)
    written(b, "2024-07-01", at(2024, 7, 2, 10), gateway, alice)
    assert waiting(report) == ["2024-07-01"]


def test_with_remake_the_late_input_makes_it_again_once(alice: User, gateway: Gateway) -> None:
    a, b = asset("a", DAILY), asset("b", DAILY)
    report = tolerant(remake=True)
    written(a, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    look(at(2024, 7, 2, 6))
    make_all(report, gateway)
    look(at(2024, 7, 3, 7))
    assert waiting(report) == []
    written(b, "2024-07-01", at(2024, 7, 3, 8), gateway, alice)
    assert waiting(report) == ["2024-07-01"]
    make_all(report, gateway)
    look(at(2024, 7, 4, 7))
    assert waiting(report) == []
    assert Run.objects.filter(asset=report).count() == 2


def test_an_input_that_comes_after_the_moment_makes_it_at_once(
    alice: User, gateway: Gateway
) -> None:
    a, b = asset("a", DAILY), asset("b", DAILY)
    report = tolerant()
    written(b, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    look(at(2024, 7, 2, 6))
    assert waiting(report) == []
    asset_b_only = AssetPartition.objects.filter(asset=report, version__gt=0)
    assert not asset_b_only.exists()
    written(a, "2024-07-01", at(2024, 7, 2, 9), gateway, alice)
    assert waiting(report) == ["2024-07-01"]
    assert Run.objects.get(asset=report).trigger == Trigger.UPSTREAM
    assert not LateInput.objects.exists()


def test_or_after_makes_a_window_without_its_input_once(alice: User, gateway: Gateway) -> None:
    a = asset("a", DAILY)
    either = scheduled("either", any_of(by("a"), after(6 * HOUR)), DAILY, since=BEGAN)
    look(at(2024, 7, 2, 6))
    assert waiting(either) == ["2024-07-01"]
    fail(Run.objects.get(asset=either), gateway)
    look(at(2024, 7, 2, 7))
    look(at(2024, 7, 3, 5))
    assert waiting(either) == []
    written(a, "2024-07-01", at(2024, 7, 3, 5, 30), gateway, alice)
    assert waiting(either) == ["2024-07-01"]


def test_windows_that_ended_before_the_schedule_began_are_not_made(gateway: Gateway) -> None:
    late = scheduled("late", after(6 * HOUR), DAILY, since=at(2024, 7, 2, 1))
    look(at(2024, 7, 2, 7))
    assert waiting(late) == []
    look(at(2024, 7, 3, 6))
    assert waiting(late) == ["2024-07-02"]


def test_a_time_beside_after_is_met_by_its_first_tick_from_then_on(gateway: Gateway) -> None:
    both = scheduled("both", all_of(cron("0 6 * * *"), after(9 * HOUR)), DAILY, since=BEGAN)
    for hour in (6, 9, 10):
        look(at(2024, 7, 2, hour))
    assert waiting(both) == []
    look(at(2024, 7, 3, 6))
    assert waiting(both) == ["2024-07-01"]


def test_two_spans_count_each_by_itself(alice: User, gateway: Gateway) -> None:
    a, b = asset("a", DAILY), asset("b", DAILY)
    spans = any_of(all_of(by("a"), after(6 * HOUR)), all_of(by("b"), after(3 * HOUR)))
    report = scheduled("report", spans, DAILY, since=BEGAN)
    written(a, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    look(at(2024, 7, 2, 3))
    assert waiting(report) == []
    look(at(2024, 7, 2, 6))
    assert waiting(report) == ["2024-07-01"]
    written(b, "2024-07-02", at(2024, 7, 3, 1), gateway, alice)
    look(at(2024, 7, 3, 3))
    assert waiting(report) == ["2024-07-01", "2024-07-02"]


# ---------------------------------------------------------------- Fresh


def test_a_fresh_model_lets_the_input_make_it(alice: User, gateway: Gateway) -> None:
    a, model = asset("a", DAILY), asset("model")
    scored = scheduled("scored", all_of(by("a"), fresh("model", 30 * DAY)), DAILY, since=BEGAN)
    written(model, "", at(2024, 7, 1, 12), gateway, alice)
    assert waiting(scored) == []
    written(a, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    assert waiting(scored) == ["2024-07-01"]
    make_all(scored, gateway)
    # A model that is trained again makes no partition again.
    written(model, "", at(2024, 7, 3), gateway, alice)
    assert waiting(scored) == []


def test_an_old_model_keeps_it_waiting_until_the_model_is_written(
    alice: User, gateway: Gateway
) -> None:
    a, model = asset("a", DAILY), asset("model")
    scored = scheduled("scored", all_of(by("a"), fresh("model", 30 * DAY)), DAILY, since=BEGAN)
    written(a, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    assert waiting(scored) == []  # there is no model
    written(model, "", at(2024, 7, 2, 2), gateway, alice)
    assert waiting(scored) == ["2024-07-01"]
    make_all(scored, gateway)
    written(a, "2024-07-31", at(2024, 8, 1, 1), gateway, alice)
    assert waiting(scored) == ["2024-07-31"]
    make_all(scored, gateway)
    written(a, "2024-08-01", at(2024, 8, 2, 3), gateway, alice)
    assert waiting(scored) == []
    # Written before windows of the past, which wait as well.
    written(a, "2024-07-15", at(2024, 8, 2, 4), gateway, alice)
    assert waiting(scored) == []
    written(model, "", at(2024, 8, 5), gateway, alice)
    assert sorted(waiting(scored)) == ["2024-07-15", "2024-08-01"]


def test_the_partitions_count_that_the_mapping_names(alice: User, gateway: Gateway) -> None:
    a, model = asset("a", DAILY), asset("model", MONTHLY)
    scored = scheduled(
        "scored", all_of(by("a"), fresh("model", 40 * DAY)), DAILY, since=BEGAN,
        upstream={"model": Latest()},
    )  # fmt: skip
    written(model, "2024-06-01", at(2024, 7, 1, 12), gateway, alice)
    written(a, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    assert waiting(scored) == ["2024-07-01"]
    # In August the model of July is the last one, and is not there.
    written(a, "2024-08-01", at(2024, 8, 2, 1), gateway, alice)
    assert waiting(scored) == ["2024-07-01"]
    written(model, "2024-07-01", at(2024, 8, 2, 2), gateway, alice)
    assert waiting(scored) == ["2024-07-01", "2024-08-01"]


def test_an_old_model_does_for_six_hours_and_remake_makes_it_again_once(
    alice: User, gateway: Gateway
) -> None:
    a, model = asset("a", DAILY), asset("model")
    alone = all_of(by("a"), after(6 * HOUR, remake=True))
    scored = scheduled(
        "scored", any_of(all_of(by("a"), fresh("model", DAY)), alone), DAILY, since=BEGAN
    )
    written(model, "", at(2024, 7, 1), gateway, alice)
    written(a, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    assert waiting(scored) == []
    look(at(2024, 7, 2, 6))
    assert waiting(scored) == ["2024-07-01"]
    late = LateInput.objects.get()
    assert (late.upstream, late.reason, late.effect) == (model, "old", "remake")
    assert late.newest_at == at(2024, 7, 1)
    make_all(scored, gateway)
    written(model, "", at(2024, 7, 2, 9), gateway, alice)
    assert waiting(scored) == ["2024-07-01"]
    make_all(scored, gateway)
    written(model, "", at(2024, 7, 2, 10), gateway, alice)
    assert waiting(scored) == []


def test_a_tick_beside_fresh_waits_for_the_model_and_then_for_a_tick(
    alice: User, gateway: Gateway
) -> None:
    model = asset("model")
    scored = scheduled(
        "scored", all_of(cron("0 6 * * *"), fresh("model", 30 * DAY)), DAILY, since=BEGAN
    )
    look(at(2024, 7, 2, 6))
    assert waiting(scored) == []
    written(model, "", at(2024, 7, 2, 8), gateway, alice)
    assert waiting(scored) == []
    look(at(2024, 7, 3, 6))
    assert sorted(waiting(scored)) == ["2024-07-01", "2024-07-02"]


def test_after_beside_fresh_waits_for_the_model_alone(alice: User, gateway: Gateway) -> None:
    model = asset("model")
    scored = scheduled(
        "scored", all_of(after(6 * HOUR), fresh("model", 30 * DAY)), DAILY, since=BEGAN
    )
    look(at(2024, 7, 2, 6))
    assert waiting(scored) == []
    written(model, "", at(2024, 7, 2, 8), gateway, alice)
    assert waiting(scored) == ["2024-07-01"]


def test_a_whole_asset_waits_for_the_model_too(alice: User, gateway: Gateway) -> None:
    a, model = asset("a"), asset("model")
    scored = scheduled("scored", all_of(by("a"), fresh("model", DAY)), since=BEGAN)
    written(a, "", at(2024, 7, 2), gateway, alice)
    assert waiting(scored) == []
    written(model, "", at(2024, 7, 3), gateway, alice)
    assert waiting(scored) == [""]
