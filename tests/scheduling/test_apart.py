"""An asset that cannot be judged keeps no other from being made."""

from typing import Any

import pytest
from django.db import OperationalError

from accounts_app.models import User
from assets_app.models import Asset, AssetDependency, Gateway, Outbox, Schedule
from assets_app.scheduling import judging
from assets_app.scheduling.again import queue_again
from assets_app.scheduling.judging import judge_outbox
from assets_app.scheduling.ticking import handle_ticks
from slicewise import Offset, PartitionByInterval
from tests.cast import asset
from tests.scheduling.scenes import at, by, cron, scheduled, waiting, write

DAILY = PartitionByInterval("@daily", start="2024-01-01")
BEGAN = at(2024, 7, 1)
NOW = at(2024, 8, 1)
pytestmark = pytest.mark.django_db


@pytest.fixture
def one(db: None) -> Asset:
    return asset("one", DAILY)


@pytest.fixture
def lagging(one: Asset) -> list[Asset]:
    """Three assets that follow it, a day later."""
    return [
        scheduled(name, by("one"), DAILY, since=BEGAN, upstream={"one": Offset(-1)})
        for name in ("first", "second", "third")
    ]


def unreadable(of: Asset) -> None:
    """Its mapping is one of a package that is not installed any more."""
    AssetDependency.objects.filter(downstream=of).update(mapping={"kind": "gone"})


def test_the_others_are_judged_and_it_is_not_tried_for_ever(
    one: Asset, lagging: list[Asset], alice: User, gateway: Gateway
) -> None:
    unreadable(lagging[1])
    write(one, "2024-07-01", gateway, alice)
    assert judge_outbox(NOW) == 1
    assert [waiting(each) for each in lagging] == [["2024-07-02"], [], ["2024-07-02"]]
    assert not Outbox.objects.exists()


def test_the_others_are_seen_to_when_their_windows_are_over(
    one: Asset, lagging: list[Asset], alice: User, gateway: Gateway
) -> None:
    write(one, "2024-07-01", gateway, alice)
    judge_outbox(at(2024, 7, 2, 12))
    assert [waiting(each) for each in lagging] == [[], [], []]
    unreadable(lagging[1])
    assert queue_again(at(2024, 7, 3)) == 3
    assert [waiting(each) for each in lagging] == [["2024-07-02"], [], ["2024-07-02"]]
    assert queue_again(at(2024, 7, 3)) == 0


def test_what_is_wrong_with_the_database_passes_and_all_is_tried_again(
    one: Asset,
    lagging: list[Asset],
    alice: User,
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OperationalError("deadlock detected")

    write(one, "2024-07-01", gateway, alice)
    with monkeypatch.context() as patched:
        patched.setattr(judging, "queue_due", fail)
        with pytest.raises(OperationalError):
            judge_outbox(NOW)
    assert judge_outbox(NOW) == 1
    assert [waiting(each) for each in lagging] == [["2024-07-02"]] * 3


def test_the_others_tick_and_what_it_missed_is_made_once_it_can_be_read() -> None:
    names = ("first", "second", "third")
    daily = [scheduled(name, cron("@daily"), DAILY, since=BEGAN) for name in names]
    own = Schedule.objects.filter(producer=daily[1].producer)
    rule = own.get().rule
    own.update(rule={"kind": "gone"})
    assert handle_ticks(at(2024, 7, 2)) == 2
    assert [waiting(each) for each in daily] == [["2024-07-01"], [], ["2024-07-01"]]
    # It is left alone for a while.
    assert not Schedule.objects.filter(next_at__lte=at(2024, 7, 2)).exists()
    own.update(rule=rule)
    assert handle_ticks(at(2024, 7, 3)) == 3
    assert [waiting(each) for each in daily] == [["2024-07-01", "2024-07-02"]] * 3
