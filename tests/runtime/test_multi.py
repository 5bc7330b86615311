"""Several assets that one function makes."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from slicewise import Asset, Every, PartitionByInterval, asset
from slicewise.declaring.decorator import MultiAsset
from slicewise.loading.archives import load_bundle

DOCUMENT = """
from slicewise import Asset, asset

@asset(uri="s3://aws_conn_id@bucket/raw_bus_trips.parquet")
def raw_bus_trips():
    ...

@asset(uri="snowflake://.../bus_trips")
def aggregated_bus_trips(self, *, raw_bus_trips):
   conn_uri, _, view_name = self.uri.rpartition("/")

@asset.multi(
  outlets=[
      Asset(name="bus_trip_1", uri="s3://../bus_trip_1.parquet"),
      Asset(name="bus_trip_2", uri="s3://../bus_trip_2.parquet"),
  ],
)
def split_trips(aggregated_bus_trips):
  ...
"""
DAYS = PartitionByInterval("@daily", start="2024-01-01")


def loaded(folder: Path, text: str) -> dict[str, Any]:
    (folder / "trips.py").write_text(text)
    report = load_bundle(folder)
    assert report["errors"] == []
    return report


def test_the_example_of_the_document_loads_as_it_is_written(tmp_path: Path) -> None:
    report = loaded(tmp_path, DOCUMENT)
    split = next(entry for entry in report["producers"] if entry["name"] == "split_trips")
    assert split["multi"] is True
    assert (split["file"], split["line"], split["inlets"]) == (
        "trips.py",
        12,
        ["aggregated_bus_trips"],
    )
    assert [(outlet["name"], outlet["uri"]) for outlet in split["outlets"]] == [
        ("bus_trip_1", "s3://../bus_trip_1.parquet"),
        ("bus_trip_2", "s3://../bus_trip_2.parquet"),
    ]
    # What is made is not reported as written by something else.
    assert report["assets"] == []
    assert json.loads(json.dumps(report)) == report


def test_outlets_are_assets_like_any_other(tmp_path: Path) -> None:
    follows = """
@asset(schedule=split_trips.outlets[0] & split_trips.outlets[1])
def joined(bus_trip_1, bus_trip_2): ...
"""
    report = loaded(tmp_path, DOCUMENT + follows)
    joined = next(entry for entry in report["producers"] if entry["name"] == "joined")
    assert joined["inlets"] == ["bus_trip_1", "bus_trip_2"]
    assert [term["name"] for term in joined["schedule"]["of"]] == ["bus_trip_1", "bus_trip_2"]


def test_outlets_share_the_partition_and_keep_facts_of_their_own() -> None:
    train = Asset("train", columns=["x"], kind="table")
    test = Asset("test", partition=PartitionByInterval("0 0 * * *", start="2024-01-01"))

    @asset.multi(outlets=[train, test], partition=DAYS, schedule="@daily", owners=["ml"])
    def split(self: Any) -> None:
        """Two sets."""

    assert isinstance(split, MultiAsset)
    assert train.partition == test.partition == split.partition == DAYS
    spec = split.to_json()
    assert (spec["description"], spec["owners"]) == ("Two sets.", ["ml"])
    assert [outlet["partition"] for outlet in spec["outlets"]] == [DAYS.to_json()] * 2
    assert [outlet["kind"] for outlet in spec["outlets"]] == ["table", None]


def test_auto_partitions_are_shared_as_well() -> None:
    @asset.multi(outlets=[Asset("one")], partition="auto", schedule="@daily")
    def alone() -> None: ...

    assert alone.outlets[0].partition == PartitionByInterval("@daily")


def test_outlets_of_another_file_are_made_again_after_an_error(tmp_path: Path) -> None:
    (tmp_path / "shared.py").write_text("from slicewise import Asset\nx = Asset('x')\n")
    text = "from slicewise import asset\nfrom shared import x\n"
    text += "@asset.multi(outlets=[x])\ndef split(): ...\n"
    (tmp_path / "a.py").write_text(text + "raise ValueError('no')\n")
    report = load_bundle(tmp_path)
    assert [error["path"] for error in report["errors"]] == ["a.py"]
    assert [entry["name"] for entry in report["assets"]] == ["x"]
    assert report["producers"] == []
    # Imported once more, by a file that is loaded after it: the same error, and where it arose.
    (tmp_path / "b.py").write_text("import a\n")
    report = load_bundle(tmp_path)
    messages = [error["message"] for error in report["errors"]]
    assert messages == ["ValueError: no", "ValueError: no (a.py:5)"]


def test_a_time_alone_is_taken_as_a_term_too() -> None:
    @asset.multi(outlets=[Asset("left"), Asset("right")], schedule=Every(timedelta(hours=1)))
    def both() -> None: ...

    assert both.to_json()["schedule"] == {"kind": "timedelta", "seconds": 3600}
