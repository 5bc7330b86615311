"""Declarations that the SDK takes and the server refuses: the error names the file, and the old
version stays in force.
"""

from typing import Any

import pytest

from assets_app.catalogue.services import SyncReport, sync_bundle
from assets_app.models import Asset, AssetDependency, Schedule
from assets_app.queries.pages import unknown_names
from tests.catalogue.conftest import Bundle
from tests.factories import definition_of

pytestmark = pytest.mark.django_db

HEADER = "from slicewise import *\n"
FINE = "@asset()\ndef fine(): ...\n"


def synced(bundle: Bundle, name: str = "trials", **files: str) -> SyncReport:
    return sync_bundle(name, bundle(**{file: HEADER + text for file, text in files.items()}))


def error_places(report: SyncReport) -> list[tuple[Any, ...]]:
    return [(error["path"], error["line"], error["asset"]) for error in report.errors]


def active() -> list[str]:
    return list(Asset.objects.filter(active=True).values_list("name", flat=True))


def test_an_option_that_this_server_does_not_act_on_is_an_error_of_the_file(
    bundle: Bundle,
) -> None:
    report = synced(bundle, a=f"{FINE}@asset(engine='submit')\ndef flights(): ...\n")
    assert error_places(report) == [("a.py", 4, "flights")]
    assert "its setting SPARK_MASTER names one" in report.errors[0]["message"]
    assert report.errors[0]["message"].startswith("asset 'flights': ")
    assert active() == ["fine"]


def test_validations_are_kept_with_the_asset_and_with_what_reads_it(bundle: Bundle) -> None:
    text = (
        "raw = Asset('raw', outlet_validations=[AssetValidation.has_columns('a')])\n"
        "@asset(uri='file:///lake/x', outlet_validations=[AssetValidation.unique('b')],\n"
        "       inlet_validations={raw: AssetValidation.not_null('a')})\n"
        "def reads(raw): ...\n"
    )
    assert synced(bundle, a=text).errors == []
    raw, reads = Asset.objects.get(name="raw"), Asset.objects.get(name="reads")
    assert [validation["name"] for validation in raw.outlet_validations] == ["has_columns(a)"]
    assert [validation["name"] for validation in reads.outlet_validations] == ["unique(b)"]
    assert reads.producer is not None
    assert reads.producer.current_version is not None
    version = reads.producer.current_version
    assert version.definition["inlet_validations"]["raw"][0]["name"] == "not_null(a)"


def test_valid_declarations_are_put_in_force(bundle: Bundle) -> None:
    text = (
        "@asset(schedule='@daily', partition='auto', start_date='2024-01-01')\n"
        "def flights(): ...\n"
        "@asset(partition=PartitionAtRuntime('carriers'))\n"
        "def carriers(): ...\n"
    )
    assert synced(bundle, a=text).errors == []
    flights = Asset.objects.get(name="flights")
    assert definition_of(flights).kind == "interval"
    assert active() == ["carriers", "flights"]


def test_an_asset_may_have_applications_of_its_own_where_there_is_a_spark_master(
    bundle: Bundle, settings: Any
) -> None:
    settings.SPARK_MASTER = "local[2]"
    assert synced(bundle, a="@asset(engine='submit')\ndef flights(): ...\n").errors == []
    assert active() == ["flights"]


def test_a_spark_master_that_is_named_later_puts_the_same_files_in_force(
    bundle: Bundle, settings: Any
) -> None:
    folder = bundle(a=f"{HEADER}@asset(engine='submit')\ndef flights(): ...\n")
    assert sync_bundle("trials", folder).errors
    assert not sync_bundle("trials", folder).changed
    settings.SPARK_MASTER = "local[2]"
    assert sync_bundle("trials", folder).errors == []
    assert active() == ["flights"]
    assert not sync_bundle("trials", folder).changed


def test_the_last_good_version_of_a_refused_asset_stays_in_force(bundle: Bundle) -> None:
    folder = bundle(a=f"{HEADER}@asset()\ndef flights(): ...\n")
    sync_bundle("trials", folder)
    before = Asset.objects.get(name="flights").producer
    assert before is not None
    (folder / "a.py").write_text(f"{HEADER}@asset(engine='submit')\ndef flights(): ...\n")
    report = sync_bundle("trials", folder)
    assert error_places(report) == [("a.py", 2, "flights")]
    after = Asset.objects.get(name="flights").producer
    assert after is not None
    assert active() == ["flights"]
    assert after.current_version_id == before.current_version_id


def test_a_name_that_another_bundle_has_is_told_with_both_places(bundle: Bundle) -> None:
    synced(bundle, "one", first=FINE)
    report = synced(bundle, "two", second=f"@asset()\ndef other(): ...\n{FINE}")
    assert error_places(report) == [("second.py", 4, "fine")]
    assert "is taken by an asset of bundle one (first.py:2)" in report.errors[0]["message"]
    assert Asset.objects.get(name="fine").bundle.name == "one"
    assert active() == ["fine", "other"]


def test_schedules_in_a_circle_over_bundles_are_told_by_the_one_that_closes_it(
    bundle: Bundle,
) -> None:
    follows = "@asset(schedule=Asset.ref('{0}'))\ndef {1}(): ...\n"
    assert synced(bundle, "one", a=follows.format("b", "a")).errors == []
    assert synced(bundle, "two", b=follows.format("c", "b")).errors == []
    report = synced(bundle, "three", c=FINE + follows.format("a", "c"))
    assert error_places(report) == [("c.py", 4, "c")]
    assert (
        "waits for itself, by way of another bundle: c -> a -> b -> c"
        in (report.errors[0]["message"])
    )
    assert active() == ["a", "b", "fine"]


def test_a_bundle_that_is_loaded_before_the_one_it_names_is_joined_to_it_later(
    bundle: Bundle,
) -> None:
    reads = "raw = Asset.ref('raw')\n@asset(schedule=raw, upstream={raw: All()})\ndef a(raw): ...\n"
    synced(bundle, "one", a=reads)
    assert not AssetDependency.objects.exists()
    synced(bundle, "two", raw="Asset('raw')\n")
    edge = AssetDependency.objects.get()
    assert (edge.upstream.name, edge.downstream.name) == ("raw", "a")
    assert (edge.inlet, edge.scheduling, edge.mapping) == (True, True, {"kind": "all"})


def test_an_asset_that_moves_to_another_bundle_is_in_force_there_once_it_is_free(
    bundle: Bundle,
) -> None:
    moved = "@asset(schedule='@daily', partition=PartitionByInterval('@daily'))\n"
    moved += "def moved(): ...\n"
    first, second = bundle(a=HEADER + FINE), bundle(b=HEADER + moved)
    sync_bundle("one", first)
    sync_bundle("two", second)
    (first / "a.py").write_text(HEADER + FINE + moved)
    (second / "b.py").write_text(HEADER)
    assert error_places(sync_bundle("one", first)) == [("a.py", 4, "moved")]
    assert not sync_bundle("one", first).changed
    sync_bundle("two", second)
    assert active() == ["fine"]
    report = sync_bundle("one", first)
    assert (report.changed, report.errors) == (True, [])
    assert active() == ["fine", "moved"]
    assert Asset.objects.get(name="moved").bundle.name == "one"
    assert Schedule.objects.get(producer__name="moved").next_at is not None
    assert not sync_bundle("one", first).changed


def test_a_circle_that_another_bundle_has_opened_is_one_no_more(bundle: Bundle) -> None:
    follows = "from slicewise import *\n@asset(schedule=Asset.ref('{0}'))\ndef {1}(): ...\n"
    first, two = bundle(a=follows.format("b", "a")), bundle(b=follows.format("a", "b"))
    sync_bundle("one", first)
    assert error_places(sync_bundle("two", two)) == [("b.py", 2, "b")]
    (first / "a.py").write_text("from slicewise import *\n@asset()\ndef a(): ...\n")
    sync_bundle("one", first)
    assert sync_bundle("two", two).errors == []
    assert active() == ["a", "b"]


def test_an_asset_that_another_program_writes_now_loses_its_dependencies(bundle: Bundle) -> None:
    folder = bundle(a=f"{HEADER}@asset()\ndef raw(): ...\n@asset()\ndef clean(raw): ...\n")
    sync_bundle("trials", folder)
    assert AssetDependency.objects.count() == 1
    (folder / "a.py").write_text(f"{HEADER}@asset()\ndef raw(): ...\nAsset('clean')\n")
    sync_bundle("trials", folder)
    assert active() == ["clean", "raw"]
    assert not AssetDependency.objects.exists()


def test_a_definition_over_a_limit_of_this_server_is_refused_until_the_limit_is_raised(
    bundle: Bundle, settings: Any
) -> None:
    settings.MAX_SEGMENTS_PER_SEQUENCE = 3
    text = "@asset(partition=PartitionBySequence(range(4)))\ndef shops(): ...\n"
    folder = bundle(a=HEADER + text)
    (error,) = sync_bundle("trials", folder).errors
    assert "the limit is 3 (setting MAX_SEGMENTS_PER_SEQUENCE" in error["message"]
    assert not sync_bundle("trials", folder).changed
    settings.MAX_SEGMENTS_PER_SEQUENCE = 4
    assert sync_bundle("trials", folder).errors == []
    assert active() == ["shops"]


def test_a_name_that_no_bundle_declares_is_told_for_the_page_of_bundles(bundle: Bundle) -> None:
    text = (
        "raw_flights = Asset('raw_flights')\n"
        "weather = Asset.ref('weather')\n"
        "@asset(schedule=Asset.ref('raw_fligths') & weather)\ndef daily(raw_flights): ...\n"
    )
    assert synced(bundle, a=text).errors == []
    assert [(name.producer, name.name, name.hint) for name in unknown_names()] == [
        ("daily", "raw_fligths", " (did you mean 'raw_flights'?)"),
        ("daily", "weather", ""),
    ]
    synced(bundle, name="others", b="weather = Asset('weather')\n")
    assert [name.name for name in unknown_names()] == ["raw_fligths"]
