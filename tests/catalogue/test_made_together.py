"""How the catalogue keeps functions that make several assets (AIP-75, multi-assets)."""

from pathlib import Path

import pytest

from accounts_app.models import User
from assets_app.catalogue.pausing import set_paused
from assets_app.catalogue.services import sync_bundle
from assets_app.models import Asset, Schedule
from tests.catalogue.conftest import Bundle
from tests.factories import person

pytestmark = pytest.mark.django_db

HEADER = "from slicewise import *\n"
SPLIT = """
@asset.multi(outlets=[{outlets}], schedule="@daily", partition=PartitionByInterval("@daily"))
def split(raw): ...
@asset()
def raw(): ...
"""
BOTH = SPLIT.format(outlets="Asset('train', uri='file:///lake/train'), Asset('test')")
ONE = SPLIT.format(outlets="Asset('train', uri='file:///lake/train')")


@pytest.fixture
def folder(bundle: Bundle) -> Path:
    bundle_folder = bundle(a=HEADER + BOTH)
    assert sync_bundle("trials", bundle_folder).errors == []
    return bundle_folder


@pytest.fixture
def alice(db: None) -> User:
    return person("alice", is_superuser=True)


def test_each_outlet_is_an_asset_of_one_function(folder: Path) -> None:
    train, test = Asset.objects.get(name="train"), Asset.objects.get(name="test")
    assert train.producer == test.producer
    assert train.producer is not None
    assert train.producer.current_version is not None
    assert train.producer.current_version.outlets == {"train": "file:///lake/train", "test": ""}
    assert not Asset.objects.filter(name="split").exists()
    for outlet in (train, test):
        assert [edge.upstream.name for edge in outlet.upstream_edges.all()] == ["raw"]
    assert Schedule.objects.get().next_at is not None


def test_an_outlet_that_is_left_out_stops_nothing_of_the_others(folder: Path) -> None:
    (folder / "a.py").write_text(HEADER + ONE)
    assert sync_bundle("trials", folder).errors == []
    assert not Asset.objects.get(name="test").active
    assert Schedule.objects.get().next_at is not None
    (folder / "a.py").write_text(f"{HEADER}@asset()\ndef raw(): ...\n")
    assert sync_bundle("trials", folder).errors == []
    assert Schedule.objects.get().next_at is None


def test_an_asset_that_comes_to_be_made_with_another_ticks_no_more_by_itself(
    bundle: Bundle,
) -> None:
    folder = bundle(a=f"{HEADER}@asset(schedule='@daily')\ndef train(): ...\n")
    assert sync_bundle("trials", folder).errors == []
    (folder / "a.py").write_text(HEADER + BOTH)
    assert sync_bundle("trials", folder).errors == []
    ticking = Schedule.objects.exclude(next_at=None)
    assert [row.producer.name for row in ticking] == ["split"]


def test_outlets_of_one_function_are_paused_together(folder: Path, alice: User) -> None:
    set_paused(Asset.objects.get(name="test"), True, user=alice)
    paused = Asset.objects.filter(paused=True).order_by("name")
    assert [row.name for row in paused] == ["test", "train"]
    assert Schedule.objects.get().next_at is None
    set_paused(Asset.objects.get(name="train"), False, user=alice)
    assert not Asset.objects.filter(paused=True).exists()


def test_an_outlet_that_no_file_declares_pauses_and_resumes_nothing_of_the_others(
    folder: Path, alice: User
) -> None:
    (folder / "a.py").write_text(HEADER + ONE)
    assert sync_bundle("trials", folder).errors == []
    undeclared = Asset.objects.get(name="test")
    before = Schedule.objects.values().get()
    for paused in (True, False):
        set_paused(undeclared, paused, user=alice)
        assert Asset.objects.get(name="test").paused is paused
        assert Schedule.objects.values().get() == before
        assert not Asset.objects.get(name="train").paused


def test_a_paused_asset_that_joins_a_function_pauses_its_other_assets(
    bundle: Bundle, alice: User
) -> None:
    one = "@asset(schedule='@daily')\ndef test(): ...\n"
    folder = bundle(a=HEADER + ONE + one)
    assert sync_bundle("trials", folder).errors == []
    set_paused(Asset.objects.get(name="test"), True, user=alice)
    (folder / "a.py").write_text(HEADER + BOTH)
    assert sync_bundle("trials", folder).errors == []
    assert Asset.objects.get(name="train").paused
    assert Schedule.objects.get(producer__name="split").is_in_pause
    set_paused(Asset.objects.get(name="train"), False, user=alice)
    assert not Asset.objects.filter(paused=True).exists()
    assert Schedule.objects.get(producer__name="split").next_at is not None


def test_the_name_of_a_function_is_not_taken_by_another_bundle(
    folder: Path, bundle: Bundle
) -> None:
    other_bundle = bundle(b=f"{HEADER}@asset.multi(outlets=[Asset('x')])\ndef split(): ...\n")
    (error,) = sync_bundle("others", other_bundle).errors
    assert "the name 'split' is taken by a function of bundle trials (a.py:" in error["message"]
    assert not Asset.objects.filter(name="x").exists()
    single = bundle(b=f"{HEADER}@asset()\ndef split(): ...\n")
    (error,) = sync_bundle("singles", single).errors
    assert "the name 'split' is taken by a function of bundle trials" in error["message"]
    assert Asset.objects.get(name="train").producer.name == "split"  # type: ignore[union-attr]
