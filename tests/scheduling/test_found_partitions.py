"""Schedules of assets whose partitions are found at run time, or that are made together."""

from datetime import datetime

import pytest

from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.models import (
    Asset,
    AssetPartition,
    Gateway,
    Run,
    RunState,
    ScheduleTick,
    Trigger,
)
from assets_app.scheduling.outbox import process_outbox
from assets_app.scheduling.requeue_due import requeue_due
from assets_app.scheduling.ticking import handle_ticks
from slicewise import PartitionAtRuntime, PartitionByInterval
from tests.factories import asset
from tests.runtime_keys import CUSTOMERS, discover, discovering, found, known
from tests.scheduling.scheduled_assets import (
    at,
    begin,
    by,
    cron,
    make_all,
    scheduled,
    waiting,
    write,
)

BEGAN = at(2024, 7, 1)
DAILY = PartitionByInterval("@daily", start="2024-01-01")
pytestmark = pytest.mark.django_db


@pytest.fixture
def models(db: None) -> Asset:
    """Create the source document's first asset, which finds the present customers every hour."""
    return scheduled("energy_consumption_model", cron("0 * * * *"), CUSTOMERS, since=BEGAN)


@pytest.fixture
def prediction(models: Asset) -> Asset:
    """Create the source document's second asset, made once for each customer that is found."""
    return scheduled("energy_prediction", by(models.name), CUSTOMERS, since=BEGAN)


def finish(of: Asset, gateway: Gateway, *keys: object) -> None:
    """Bring the only waiting run of an asset to its success, with the keys that it has found."""
    attempt = begin(Run.objects.get(asset=of, state=RunState.QUEUED), gateway)
    assert attempts.intend_to_publish(attempt.row, [], found(*keys))
    assert ending.succeed(attempt.row)


def tick(now: datetime) -> None:
    handle_ticks(now)
    process_outbox(now)
    requeue_due(now)


def test_the_example_of_the_source_document(
    models: Asset, prediction: Asset, gateway: Gateway
) -> None:
    tick(at(2024, 7, 1, 1))
    assert waiting(models) == [""]
    finish(models, gateway, "acme", "globex")
    tick(at(2024, 7, 1, 1))
    assert waiting(prediction) == ["acme", "globex"]
    assert Run.objects.filter(asset=prediction).first().trigger == Trigger.UPSTREAM  # type: ignore[union-attr]
    make_all(prediction, gateway)
    tick(at(2024, 7, 1, 1))
    assert waiting(prediction) == [], "each is made once"
    # An hour later one is found again, and another one for the first time.
    tick(at(2024, 7, 1, 2))
    finish(models, gateway, "globex", "initech")
    tick(at(2024, 7, 1, 2))
    assert waiting(prediction) == ["globex", "initech"]
    make_all(prediction, gateway)
    partitions = AssetPartition.objects.filter(asset=prediction).order_by("key")
    assert [(row.key, row.version) for row in partitions] == [
        ("acme", 1),
        ("globex", 2),
        ("initech", 1),
    ]
    assert known(prediction) == ["acme", "globex", "initech"]


def test_a_tick_that_comes_while_a_run_looks_for_partitions_is_seen_to_afterwards(
    models: Asset, gateway: Gateway
) -> None:
    tick(at(2024, 7, 1, 1))
    tick(at(2024, 7, 1, 2))
    assert waiting(models) == [""]
    finish(models, gateway, "acme")
    tick(at(2024, 7, 1, 2))
    assert waiting(models) == [""]
    assert [row.queued for row in ScheduleTick.objects.order_by("at")] == [1, 0]


def test_a_run_looks_for_partitions_at_every_tick(models: Asset, gateway: Gateway) -> None:
    for hour in range(1, 5):
        tick(at(2024, 7, 1, hour))
        assert waiting(models) == [""], f"at {hour}:00"
        finish(models, gateway, "acme", f"customer-{hour}")
    assert [row.queued for row in ScheduleTick.objects.order_by("at")] == [1, 1, 1, 1]


def test_a_run_looks_for_partitions_also_after_a_person_had_one_do_so(
    models: Asset, alice: User, gateway: Gateway
) -> None:
    discover(models, alice, gateway, "acme")
    tick(at(2024, 7, 1, 1))
    assert waiting(models) == [""]


def test_an_asset_of_another_kind_upstream_makes_a_run_look_for_partitions(
    alice: User, gateway: Gateway
) -> None:
    accounts = asset("accounts", DAILY)
    models = scheduled("models", by("accounts"), CUSTOMERS, since=BEGAN)
    write(accounts, "2024-07-01", gateway, alice)
    tick(at(2024, 7, 2))
    assert waiting(models) == [""]
    finish(models, gateway, "acme")
    tick(at(2024, 7, 2))
    assert waiting(models) == []
    write(accounts, "2024-07-02", gateway, alice)
    tick(at(2024, 7, 3))
    assert waiting(models) == [""]


def test_another_set_upstream_is_of_another_kind(alice: User, gateway: Gateway) -> None:
    sites = asset("sites", PartitionAtRuntime(name="sites"))
    models = scheduled("models", by("sites"), CUSTOMERS, since=BEGAN)
    discover(sites, alice, gateway)
    tick(at(2024, 7, 1))
    assert waiting(models) == [], "nothing was found"
    attempt = discovering(sites, alice, gateway)
    assert attempts.intend_to_publish(attempt.row, [], [{"set": "sites", "key": "berlin"}])
    assert ending.succeed(attempt.row)
    tick(at(2024, 7, 1))
    assert waiting(models) == [""]


def test_an_asset_that_is_not_partitioned_follows_what_was_found(
    models: Asset, alice: User, gateway: Gateway
) -> None:
    report = scheduled("report", by(models.name), since=BEGAN)
    discover(models, alice, gateway)
    tick(at(2024, 7, 1))
    assert waiting(report) == [], "nothing was found"
    discover(models, alice, gateway, "acme")
    tick(at(2024, 7, 1))
    assert waiting(report) == [""]


def test_partitions_with_a_removed_key_do_not_block_downstream_partitions(
    models: Asset, prediction: Asset, alice: User, gateway: Gateway
) -> None:
    discover(models, alice, gateway, "acme", "globex")
    row = Asset.objects.get(pk=models.pk).partition_definition
    assert row is not None
    row.runtime_partitions.filter(key="acme").update(removed_at=BEGAN)
    row.revise()
    tick(at(2024, 7, 1))
    assert waiting(prediction) == ["globex"]


def split(schedule: dict[str, str]) -> tuple[Asset, Asset]:
    """Create two assets that one function makes by a schedule."""
    outlets = [{"name": "train"}, {"name": "test"}]
    train = scheduled("train", schedule, DAILY, since=BEGAN, outlets=outlets)
    test = Asset.objects.get(pk=train.pk)
    test.pk, test.name = None, "test"
    test.save()
    for edge in list(train.upstream_edges.all()):
        edge.pk, edge.downstream = None, test
        edge.save()
    return train, test


def test_a_tick_makes_all_that_is_made_together_once(gateway: Gateway) -> None:
    train, test = split(cron("0 0 * * *"))
    tick(at(2024, 7, 3))
    assert waiting(train) == ["2024-07-01", "2024-07-02"]
    assert waiting(test) == []
    assert AssetPartition.objects.filter(asset=test, held_by__isnull=False).count() == 2


def test_an_asset_upstream_makes_all_that_is_made_together_once(
    alice: User, gateway: Gateway
) -> None:
    flights = asset("flights", DAILY)
    train, test = split(by("flights"))
    write(flights, "2024-07-01", gateway, alice)
    tick(at(2024, 7, 3))
    assert (waiting(train), waiting(test)) == (["2024-07-01"], [])
    assert not AssetPartition.objects.filter(due_again=True).exists()


def test_one_of_several_that_are_made_together_is_followed_by_its_name(
    alice: User, gateway: Gateway
) -> None:
    _, test = split(cron("0 0 * * *"))
    model = scheduled("model", by("test"), DAILY, since=BEGAN)
    tick(at(2024, 7, 2))
    run = Run.objects.get(state=RunState.QUEUED)
    attempt = begin(run, gateway)
    assert attempts.intend_to_publish(attempt.row, [])
    assert ending.succeed(attempt.row)
    assert AssetPartition.objects.get(asset=test).version == 1
    tick(at(2024, 7, 2))
    assert waiting(model) == ["2024-07-01"]
