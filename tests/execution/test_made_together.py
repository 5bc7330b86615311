"""Assets that one function makes: claimed, put in place, recorded and released as one (AIP-75)."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.attempt.outputs import Output
from assets_app.execution.gateway import publishing
from assets_app.execution.queue.control import cancel_run
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, AssetPartition, Gateway, Materialization, Run, RunState
from slicewise import storage
from slicewise_server.web.request_errors import ConflictingRequest
from tests.attempts import begun
from tests.execution.staged_attempts import finish_publication
from tests.factories import DAILY_2013, outlet_of, together
from tests.partition_records import counts_agree_with_partitions

DAYS = ["2013-01-01", "2013-01-02"]
Pair = tuple[Asset, Asset]
pytestmark = pytest.mark.django_db


@pytest.fixture
def split(db: None) -> Pair:
    """Create a function that makes train and test, each day."""
    train, test = together("split", ["train", "test"], DAILY_2013)
    return train, test


def states(of: Asset) -> dict[str, str]:
    return dict(AssetPartition.objects.filter(asset=of).order_by("key").values_list("key", "state"))


class Staged:
    """An attempt at two days whose data is staged for both outlets, the intent being committed."""

    def __init__(self, attempt: Attempt, lake: Path, split: Pair) -> None:
        self.attempt, self.run, self.lake = attempt.row, attempt.run, lake
        names = attempt.row.disk_names(attempt.run.producer_version)
        self.outlets = []
        for of in split:
            root = lake / of.name
            root.mkdir(parents=True)
            fence = attempt.row.fence
            staging = storage.staging_path(
                root, attempt.run.pk, names[of.name], fence, partitioned=True
            )
            pieces = [
                {"key": key, "path": f"partition={key}", "rows": 1, "bytes": 1}
                for key in attempt.keys
            ]
            for partition in pieces:
                (staging / str(partition["path"])).mkdir(parents=True)
                marker = storage.marker_name(attempt.run.pk, names[of.name])
                (staging / str(partition["path"]) / marker).touch()
            self.outlets.append(
                outlet_of(attempt, pieces, of=of, root=str(root), staging=str(staging))
            )
        assert attempts.intend_to_publish(attempt.row, self.outlets)

    def publish(self) -> None:
        publishing.publish(self.attempt, self.outlets)

    def finish(self, gateway: Gateway) -> None:
        """Have a gateway finish the publication, as after the loss of the worker."""
        finish_publication(self.attempt, gateway)

    def in_place(self) -> set[str]:
        folders = self.lake.glob("*/partition=*")
        return {f"{path.parent.name} {path.name.partition('=')[2]}" for path in folders}


@pytest.fixture
def staged(alice: User, gateway: Gateway, tmp_path: Path, split: Pair) -> Staged:
    attempt = begun(split[0], alice, gateway, "2013-01-01..2013-01-02", strategy="range")
    return Staged(attempt, tmp_path / "lake", split)


def test_a_run_takes_the_partitions_of_all_outlets(
    alice: User, gateway: Gateway, split: Pair
) -> None:
    attempt = begun(split[1], alice, gateway, "2013-01-01..2013-01-02", strategy="range")
    assert attempt.keys == DAYS
    assert (attempt.run.asset, attempt.run.partition_count) == (split[1], 2)
    partitions = AssetPartition.objects.filter(held_by=attempt.run)
    assert sorted(partitions.values_list("asset__name", "key")) == [
        (name, day) for name in ("test", "train") for day in DAYS
    ]


def test_a_run_of_one_outlet_holds_the_partitions_of_all_outlets(
    alice: User, gateway: Gateway, split: Pair
) -> None:
    begun(split[0], alice, gateway, "2013-01-01")
    with pytest.raises(ConflictingRequest, match="Another run is materializing test 2013-01-01"):
        materialize(MaterializeRequest(asset=split[1], selection="2013-01-01"), user=alice)
    group = materialize(
        MaterializeRequest(asset=split[1], selection="2013-01-01..2013-01-02"), user=alice
    )
    assert group.in_flight == ["2013-01-01"]


def test_where_one_outlet_is_held_none_is_taken(alice: User, gateway: Gateway, split: Pair) -> None:
    # As if test had been made alone before the function made both.
    version = begun(split[1], alice, gateway, "2013-01-01").run.producer_version
    AssetPartition.objects.filter(asset=split[0]).update(held_by=None)
    assert list(version.outlets) == ["train", "test"]
    with pytest.raises(ConflictingRequest):
        materialize(MaterializeRequest(asset=split[0], selection="2013-01-01"), user=alice)
    group = materialize(
        MaterializeRequest(asset=split[0], selection="2013-01-01..2013-01-02"), user=alice
    )
    run = group.runs.get()
    assert run.selection == "2013-01-02"
    assert run.partitions.count() == 2
    assert not AssetPartition.objects.get(asset=split[0], key="2013-01-01").held_by


def test_all_are_put_in_place_and_recorded(staged: Staged, split: Pair) -> None:
    staged.publish()
    assert staged.in_place() == {f"{name} {day}" for name in ("train", "test") for day in DAYS}
    assert states(split[0]) == states(split[1]) == dict.fromkeys(DAYS, "materialized")
    assert Materialization.objects.count() == 4
    assert counts_agree_with_partitions()
    assert not list(staged.lake.glob("*/_slicewise*"))


def test_one_that_cannot_be_put_in_place_keeps_all_out(staged: Staged, split: Pair) -> None:
    (staged.lake / "test" / "partition=2013-01-02" / "somebody's").mkdir(parents=True)
    staged.publish()
    assert Run.objects.get().state == RunState.FAILED
    assert staged.in_place() == {"test 2013-01-02"}
    assert states(split[0]) == states(split[1]) == dict.fromkeys(DAYS, "failed")
    assert not Materialization.objects.exists()
    assert not list(staged.lake.glob("*/_slicewise*")), "staging was left behind"


def test_a_publication_stopped_between_two_outlets_is_finished_by_another_worker(
    staged: Staged, split: Pair, gateway: Gateway
) -> None:
    real = storage.publish
    published_roots: list[str] = []

    def publish(root: str, *args: Any, **names: Any) -> None:
        if published_roots:
            raise KeyboardInterrupt
        published_roots.append(root)
        real(root, *args, **names)

    with patch.object(storage, "publish", publish), pytest.raises(KeyboardInterrupt):
        staged.publish()
    assert staged.in_place() == {"train 2013-01-01", "train 2013-01-02"}
    assert Run.objects.get().state == RunState.PUBLISHING
    staged.finish(gateway)
    assert Run.objects.get().state == RunState.SUCCEEDED
    assert staged.in_place() == {f"{name} {day}" for name in ("train", "test") for day in DAYS}
    assert states(split[0]) == states(split[1]) == dict.fromkeys(DAYS, "materialized")
    assert Materialization.objects.count() == 4


def test_a_publication_stopped_before_its_record_is_recorded_once(
    staged: Staged, gateway: Gateway
) -> None:
    with (
        patch.object(ending, "succeed", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        staged.publish()
    staged.finish(gateway)
    staged.publish()  # the lost worker wakes up
    assert Materialization.objects.count() == 4
    assert Run.objects.get().state == RunState.SUCCEEDED


def test_two_outlets_that_stage_in_one_folder_do_not_meet(
    alice: User, gateway: Gateway, tmp_path: Path
) -> None:
    first, second = together("pair", ["one", "two"])
    attempt = begun(first, alice, gateway, "")
    names = attempt.row.disk_names(attempt.run.producer_version)
    homes = [
        storage.staging_path(tmp_path / of.name, 1, names[of.name], 1, partitioned=False)
        for of in (first, second)
    ]
    for home in homes:
        home.mkdir()
    assert homes[0].parent == homes[1].parent
    storage.discard(str(tmp_path / "one"), run_id=1, attempt=names["one"])
    assert [home.exists() for home in homes] == [False, True]


def test_staged_data_of_all_outlets_is_discarded(staged: Staged) -> None:
    version = staged.run.producer_version
    outlets = [{"name": name, "uri": f"file:{staged.lake / name}"} for name in ("train", "test")]
    version.definition = {**version.definition, "outlets": outlets}
    assert list(staged.lake.glob("*/_slicewise*"))
    publishing.discard_staging(staged.attempt, version)
    assert not list(staged.lake.glob("*/_slicewise*"))


def test_a_failure_and_a_cancellation_let_all_of_them_go(
    alice: User, gateway: Gateway, split: Pair
) -> None:
    failed = begun(split[0], alice, gateway, "2013-01-01")
    assert ending.fail(failed.row, Failure(error="ValueError: no"))
    canceled = materialize(MaterializeRequest(asset=split[1], selection="2013-01-02"), user=alice)
    cancel_run(canceled.runs.get(), user=alice)
    assert (
        states(split[0]) == states(split[1]) == dict(zip(DAYS, ["failed", "canceled"], strict=True))
    )
    assert not AssetPartition.objects.exclude(held_by=None).exists()
    assert counts_agree_with_partitions()


def test_data_of_what_a_run_does_not_make_is_refused(
    alice: User, gateway: Gateway, split: Pair
) -> None:
    attempt = begun(split[0], alice, gateway, "2013-01-01")
    version = attempt.run.producer_version
    outlets = [{"name": name, "uri": f"file:///lake/{name}"} for name in ("train", "test")]
    version.definition = {**version.definition, "outlets": outlets}
    output = Output(attempt.run, attempt.row, attempt.keys)
    disk_name = attempt.row.disk_names(version)["test"]
    staging = storage.staging_path(
        Path("/lake/test"), attempt.run.pk, disk_name, 1, partitioned=True
    )
    staged = {"staging": str(staging), "partitions": []}
    output.take_staged({"asset": "test", **staged})
    with pytest.raises(ValueError, match="'carriers', which is no asset of the run"):
        output.take_staged({"asset": "carriers", **staged})
    assert [outlet.asset_id for outlet in output.outlets()] == [split[1].pk]
