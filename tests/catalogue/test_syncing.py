"""How the catalogue is kept in step: by the beat, and by people."""

from contextlib import closing
from typing import Any
from unittest.mock import patch

import psycopg
import pytest
from django.core.cache import cache
from django.db import connection

from assets_app.catalogue import services
from assets_app.catalogue.loading import BundleNotLoaded, LoadedBundle
from assets_app.catalogue.services import sync_bundle, sync_bundles
from assets_app.catalogue.storing import store as real_store
from assets_app.models import Asset, BundleVersion, Producer, ProducerVersion, Schedule
from assets_app.models import Bundle as BundleRow
from slicewise_server.web.advisory_locks import AdvisoryLock
from tests.catalogue.conftest import Bundle

pytestmark = pytest.mark.django_db

ENDLESS = {"loop": "while True: pass"}
GOOD = {"good": "from slicewise import asset\n\n@asset()\ndef greeting(): ...\n"}


@pytest.fixture(autouse=True)
def nothing_refused_yet() -> None:
    cache.clear()


class Loader:
    """A stand-in for the loader process: refuses, and counts requests."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, digest: str, archive: bytes) -> LoadedBundle:
        self.asked += 1
        raise BundleNotLoaded("Its files were not loaded within 60 s.")


@pytest.fixture
def refusing() -> Any:
    with patch.object(services, "load", Loader()) as loader:
        yield loader


def test_the_beat_does_not_load_a_refused_bundle_again_for_a_while(
    bundle: Bundle, refusing: Loader
) -> None:
    bundles = {"trials": bundle(**ENDLESS)}
    for _ in range(3):
        (report,) = sync_bundles(bundles)
        assert report.errors[0]["message"] == "Its files were not loaded within 60 s."
    assert refusing.asked == 1
    assert BundleRow.objects.get().checked_at is not None
    cache.clear()  # ten minutes later
    sync_bundles(bundles)
    assert refusing.asked == 2


def test_a_refused_bundle_is_loaded_at_once_when_a_person_asks(
    bundle: Bundle, refusing: Loader
) -> None:
    folder = bundle(**ENDLESS)
    sync_bundles({"trials": folder})
    sync_bundle("trials", folder)
    assert refusing.asked == 2


def test_a_refused_bundle_is_loaded_at_once_when_it_has_changed(bundle: Bundle) -> None:
    folder = bundle(**ENDLESS)
    with patch.object(services, "load", Loader()):
        sync_bundles({"trials": folder})
    (folder / "loop.py").write_text("")
    (report,) = sync_bundles({"trials": folder})
    assert (report.changed, report.errors) == (True, [])


def test_the_beat_does_nothing_while_another_sync_is_on(bundle: Bundle) -> None:
    bundles = {"trials": bundle(**GOOD)}
    facts = connection.get_connection_params()
    named = {name: facts[name] for name in ("host", "port", "user", "password", "dbname")}
    with closing(psycopg.connect(**named, autocommit=True)) as other_connection:
        other_connection.execute("SELECT pg_advisory_lock(%s)", [AdvisoryLock.SYNC])
        assert sync_bundles(bundles) == []
        # By closing alone it would be given back a moment later.
        other_connection.execute("SELECT pg_advisory_unlock(%s)", [AdvisoryLock.SYNC])
    (report,) = sync_bundles(bundles)
    assert (report.changed, report.assets) == (True, 1)


def test_a_bundle_that_cannot_be_stored_keeps_no_other_waiting(bundle: Bundle) -> None:
    def store(row: BundleRow, loaded: LoadedBundle) -> BundleVersion:
        if row.name == "bad":
            raise ValueError("no")
        return real_store(row, loaded)

    with patch.object(services, "store", store):
        reports = sync_bundles({"bad": bundle(**GOOD), "good": bundle(**GOOD)})
    assert [report.bundle.name for report in reports] == ["good"]


def test_a_traceback_that_the_database_cannot_hold_is_not_lost(bundle: Bundle) -> None:
    report = sync_bundle("trials", bundle(odd=r"raise ValueError('a\0b and \ud800')"))
    (error,) = report.errors
    assert "a\N{REPLACEMENT CHARACTER}b and \\ud800" in error["message"]


def test_a_bundle_that_the_settings_name_no_more_is_not_in_force(
    bundle: Bundle, settings: Any
) -> None:
    timed = "from slicewise import asset\n\n@asset(schedule='@daily')\ndef greeting(): ...\n"
    folder, other_folder = bundle(good=timed), bundle()
    settings.BUNDLES = {"old": folder, "other": other_folder}
    sync_bundles()
    assert Asset.objects.get().active
    # Renamed: what it declares is that of the new one.
    settings.BUNDLES = {"new": folder, "other": other_folder}
    reports = sync_bundles()
    assert [report.errors for report in reports] == [[], []]
    stored_asset = Asset.objects.get()
    assert (stored_asset.active, stored_asset.bundle.name) == (True, "new")
    assert Schedule.objects.get().next_at is not None
    # Taken out, and back again.
    settings.BUNDLES = {"other": other_folder}
    sync_bundles()
    assert not Asset.objects.get().active
    assert Schedule.objects.get().next_at is None
    settings.BUNDLES = {"new": folder, "other": other_folder}
    sync_bundles()
    assert Asset.objects.get().active
    # As if the settings were lacking.
    settings.BUNDLES = {}
    assert sync_bundles() == []
    assert Asset.objects.get().active


CHAIN = """
from slicewise import Asset, PartitionByInterval, asset

told = Asset("told")

@asset(schedule="@daily", partition=PartitionByInterval("@daily", start="2024-01-01"), tags=["a"])
def first(told):
    {first}

@asset(schedule=first | told, uri="/lake/second")
def second(first, told):
    {second}
"""


def written_by() -> dict[str, dict[Any, Any]]:
    """Return the transaction that wrote each row, by table."""
    tables = {
        "assets_app_asset": "name",
        "assets_app_assetdependency": "upstream_id || '>' || downstream_id",
        "assets_app_schedule": "producer_id",
        "assets_app_rungroup": "id",
        "partitions_app_partitiondefinition": "id",
    }
    with connection.cursor() as cursor:
        versions = {}
        for table, key in tables.items():
            cursor.execute(f"SELECT {key}, xmin::text FROM {table}")
            versions[table] = dict(cursor.fetchall())
    return versions


@pytest.mark.django_db(transaction=True)
def test_a_sync_writes_nothing_of_what_stays_as_it_was(bundle: Bundle) -> None:
    text = CHAIN.format(first="pass", second="pass")
    folder = bundle(chain=text)
    sync_bundle("trials", folder)
    before = written_by()
    assert all(before.values())
    versions = set(ProducerVersion.objects.values_list("pk", flat=True))
    (folder / "chain.py").write_text(CHAIN.format(first="pass", second="return None"))
    assert sync_bundle("trials", folder).changed
    assert written_by() == before
    # What a function calls may stand in any file: the runs to come are of the new one.
    assert not versions & set(Producer.objects.values_list("current_version", flat=True))
    (folder / "chain.py").write_text(text.replace("first | told", "told"))
    sync_bundle("trials", folder)
    changed = [
        (table, key)
        for table, rows in written_by().items()
        for key, writer in rows.items()
        if writer != before[table].get(key)
    ]
    ids = dict(Asset.objects.values_list("name", "pk"))
    second = Producer.objects.get(name="second").pk
    assert sorted(changed) == [
        ("assets_app_asset", "second"),
        ("assets_app_assetdependency", f"{ids['first']}>{ids['second']}"),
        ("assets_app_schedule", second),
    ]
