"""Partitions that a definition no longer has are listed, and their data is removed safely."""

from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.test import Client

from accounts_app.models import AuditEntry, User
from accounts_app.policy import Role
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.request.orphans import find_orphans, remove_orphans
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, AssetPartition, AttemptOutlet, Gateway, Materialization, Run
from partitions_app.models import PartitionDefinition
from slicewise import (
    PartitionAtRuntime,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
)
from slicewise.io import StorageLocation, Writer
from slicewise.io.objects import S3Storage
from slicewise.io.postgres import PostgresStorage
from slicewise.partitions.partition_paths import key_folder
from slicewise.storage.layout import marker_name, version_of
from tests.factories import AIRPORTS, DAILY_2013, asset, external, outlet_of, person
from tests.partition_records import counts_agree_with_partitions

DAYS = ("2013-01-01", "2013-01-02", "2013-01-03")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def days(alice: User, gateway: Gateway, lake: Path) -> Asset:
    day_asset = asset("days", DAILY_2013, canonical_uri=f"file://localhost{quote(str(lake))}")
    for day in DAYS:
        make(day_asset, day, alice, gateway)
    return day_asset


def make(of: Asset, text: str, user: User, gateway: Gateway) -> Run:
    """Publish a partition as a run does: files and a mark in the partition's folder, and the
    record.
    """
    run = materialize(MaterializeRequest(asset=of, selection=text), user=user).runs.get()
    dispatch()
    attempt = attempts.begin(run.pk, gateway)
    assert attempt is not None
    definition = of.definition
    path = "." if definition is None else key_folder(definition, definition.parse(text))
    staged = [{"key": text, "path": path, "rows": 3, "bytes": 10}]
    outlet = outlet_of(attempt, staged, root=of.canonical_uri)
    assert attempts.intend_to_publish(attempt.row, [outlet])
    assert ending.succeed(attempt.row)
    folder = lake_of(of) / path
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"part-{run.pk}.parquet").write_bytes(b"0123456789")
    (folder / marker_name(run.pk, outlet.name_on_disk)).touch()
    return run


def lake_of(of: Asset) -> Path:
    return Path(of.canonical_uri.removeprefix("file://localhost"))


def redefine(of: Asset, definition: Any) -> Asset:
    """Give the asset another definition, as a sync would."""
    of.partition_definition = definition and PartitionDefinition.of(definition.to_json())
    of.save()
    return Asset.objects.select_related("partition_definition").get(pk=of.pk)


def kept(of: Asset) -> dict[str, str]:
    return {orphan.row.key: orphan.kept for orphan in find_orphans(of)}


def folders(of: Asset) -> set[str]:
    return {path.name for path in lake_of(of).iterdir() if not path.name.startswith("_")}


def page(of: Asset, user: User) -> str:
    browser = Client()
    browser.force_login(user)
    return browser.get(f"/assets/{of.name}/").content.decode()


def remove(of: Asset, user: User) -> list[str]:
    return [orphan.row.key for orphan in remove_orphans(of, user=user).removed]


def test_an_asset_that_lost_nothing_has_none(days: Asset, alice: User) -> None:
    assert kept(days) == {}
    assert remove(days, alice) == []
    assert len(folders(days)) == 3


@pytest.mark.parametrize(
    "definition",
    [
        PartitionByInterval("@daily", start="2013-01-03", end="2014-01-01"),
        PartitionByInterval(
            "@daily", start="2012-01-03", end="2014-01-01", exclude=["2013-01-01", "2013-01-02"]
        ),
    ],
    ids=["moved bound", "excluded windows"],
)
def test_orphans_are_listed_and_removed(days: Asset, alice: User, definition: Any) -> None:
    now = redefine(days, definition)
    assert kept(now) == {DAYS[0]: "", DAYS[1]: ""}
    assert [orphan.row.path for orphan in find_orphans(now)] == [
        "partition=2013-01-01", "partition=2013-01-02",
    ]  # fmt: skip
    assert "2 no longer defined" in page(now, alice)
    assert remove(now, alice) == list(DAYS[:2])
    assert folders(now) == {"partition=2013-01-03"}
    assert list(lake_of(now).glob("_slicewise-discarded*")) == []
    states = dict(AssetPartition.objects.values_list("key", "state"))
    assert states == {DAYS[0]: "missing", DAYS[1]: "missing", DAYS[2]: "materialized"}
    counts_agree_with_partitions()
    assert Materialization.objects.count() == 3
    entry = AuditEntry.objects.get(action="remove orphans")
    assert (entry.subject, entry.detail["partitions"]) == ("days", list(DAYS[:2]))
    assert kept(now) == {}
    assert "no longer defined" not in page(now, alice)


def test_a_removed_segment_is_an_orphan(alice: User, gateway: Gateway, lake: Path) -> None:
    airport_asset = asset("airports", AIRPORTS, canonical_uri=f"file://localhost{quote(str(lake))}")
    for airport in ("EWR", "JFK"):
        make(airport_asset, airport, alice, gateway)
    now = redefine(airport_asset, PartitionBySequence(["JFK", "LGA"]))
    assert remove(now, alice) == ["EWR"]
    assert folders(now) == {"partition=JFK"}


@pytest.mark.django_db
def test_of_what_something_else_has_written_nothing_is_removed(lake: Path) -> None:
    uri = f"file://localhost{quote(str(lake))}"
    now = redefine(external("shops", canonical_uri=uri), PartitionAtRuntime("shops"))
    AssetPartition.objects.create(
        asset=now, identity=now.identity, key="mitte", segment="mitte", state="materialized",
        version=1,
    )  # fmt: skip
    assert kept(now) == {"mitte": "no run has written it"}


def test_a_folder_that_two_cuts_share_stays(days: Asset, alice: User) -> None:
    daily = days.identity
    two_days = timedelta(days=2)
    now = redefine(days, PartitionByInterval(two_days, start="2013-01-01", end="2014-01-01"))
    assert now.identity != daily
    assert kept(now) == {
        DAYS[0]: "a present partition has its folder",
        DAYS[1]: "",
        DAYS[2]: "a present partition has its folder",
    }
    assert remove(now, alice) == [DAYS[1]]
    assert folders(now) == {"partition=2013-01-01", "partition=2013-01-03"}


def test_of_a_folder_that_holds_other_partitions_the_files_go_alone(
    days: Asset, alice: User
) -> None:
    now = redefine(days, PartitionByProduct({"partition": DAILY_2013, "airport": AIRPORTS}))
    inner = lake_of(now) / "partition=2013-01-01" / "airport=JFK"
    inner.mkdir()
    (inner / "part-0.parquet").write_bytes(b"other")
    assert remove(now, alice) == list(DAYS)
    assert [path.name for path in inner.parent.iterdir()] == ["airport=JFK"]
    assert (inner / "part-0.parquet").read_bytes() == b"other"


def test_data_that_was_whole_goes_and_the_partitions_beside_it_stay(
    alice: User, gateway: Gateway, lake: Path
) -> None:
    unpartitioned = asset("whole", canonical_uri=f"file://localhost{quote(str(lake))}")
    make(unpartitioned, "", alice, gateway)
    now = redefine(unpartitioned, DAILY_2013)
    make(now, DAYS[0], alice, gateway)
    assert remove(now, alice) == [""]
    assert [path.name for path in lake.iterdir()] == ["partition=2013-01-01"]
    assert len(list((lake / "partition=2013-01-01").iterdir())) == 2


def test_data_of_other_runs_assets_and_programs_is_kept(
    days: Asset, alice: User, gateway: Gateway, lake: Path
) -> None:
    """A run holds one partition, another asset shares the location, another program wrote anew."""
    materialize(MaterializeRequest(asset=days, selection=DAYS[0]), user=alice)
    asset("twin", PartitionByInterval("@daily", start="2013-01-02", end="2013-01-03"),
          canonical_uri=days.canonical_uri)  # fmt: skip
    now = redefine(days, PartitionByInterval("@daily", start="2013-06-01", end="2014-01-01"))
    assert kept(now) == {
        DAYS[0]: "a run is materializing the partition",
        DAYS[1]: "twin has a partition in its folder",
        DAYS[2]: "",
    }
    for mark in (lake / "partition=2013-01-03").glob("_slicewise-*"):
        mark.unlink()
    removal = remove_orphans(now, user=alice)
    assert removal.removed == []
    assert [orphan.kept for orphan in removal.kept][
        -1
    ] == "the data is not the data of the run on record"
    assert len(folders(now)) == 3


def test_an_asset_within_the_place_keeps_its_own(days: Asset) -> None:
    asset("inner", canonical_uri=f"{days.canonical_uri}/partition=2013-01-01")
    asset("around", canonical_uri=days.canonical_uri.rpartition("/")[0])
    now = redefine(days, PartitionByInterval("@daily", start="2013-06-01", end="2014-01-01"))
    assert kept(now) == {DAYS[0]: "inner has a partition in its folder", DAYS[1]: "", DAYS[2]: ""}


def test_no_link_is_followed(days: Asset, alice: User, lake: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (lake / "partition=2013-01-01").rename(elsewhere)
    (lake / "partition=2013-01-01").symlink_to(elsewhere)
    secret = tmp_path / "secret"
    secret.write_text("stays")
    (lake / "partition=2013-01-02" / "part-x.parquet").symlink_to(secret)
    now = redefine(days, PartitionByInterval("@daily", start="2013-06-01", end="2014-01-01"))
    removal = remove_orphans(now, user=alice)
    assert [orphan.row.key for orphan in removal.kept] == [DAYS[0]]
    assert len(list(elsewhere.iterdir())) == 2
    assert secret.read_text() == "stays"


def test_data_at_another_place_stays(days: Asset, alice: User, tmp_path: Path) -> None:
    old = lake_of(days)
    (tmp_path / "new").mkdir()
    days.canonical_uri = f"file://localhost{quote(str(tmp_path / 'new'))}"
    now = redefine(days, PartitionByInterval("@daily", start="2013-06-01", end="2014-01-01"))
    assert set(kept(now).values()) == {f"its data is at file://localhost{old}"}
    assert remove(now, alice) == []
    assert len(list(old.iterdir())) == 3


def test_only_what_was_seen_is_removed_and_a_call_can_be_made_again(
    days: Asset, alice: User
) -> None:
    now = redefine(days, PartitionByInterval("@daily", start="2013-06-01", end="2014-01-01"))
    first = find_orphans(now)[0].row
    for file in sorted((lake_of(now) / first.path).glob("part-*")):
        file.unlink()  # as a call leaves it that was killed
    removal = remove_orphans(now, user=alice, only={first.partition_id})
    assert [orphan.row.key for orphan in removal.removed] == [DAYS[0]]
    assert folders(now) == {"partition=2013-01-02", "partition=2013-01-03"}
    with pytest.raises(PermissionDenied):
        remove_orphans(now, user=person("olga", Role.OPERATOR))


def test_all_versions_of_a_partition_go(days: Asset, alice: User, lake: Path) -> None:
    home = lake / "_slicewise-versions" / "partition=2013-01-01"
    (home / "1").mkdir(parents=True)
    (lake / "partition=2013-01-01").rename(home / "2")
    (lake / "partition=2013-01-01").symlink_to("_slicewise-versions/partition=2013-01-01/2")
    assert version_of(lake, "partition=2013-01-01") == 2
    now = redefine(days, PartitionByInterval("@daily", start="2013-01-02", end="2014-01-01"))
    assert remove(now, alice) == [DAYS[0]]
    assert not (lake / "partition=2013-01-01").is_symlink()
    assert list(home.iterdir()) == []
    assert folders(now) == {"partition=2013-01-02", "partition=2013-01-03"}


@pytest.mark.django_db(transaction=True)
def test_rows_of_a_table_go_with_their_marks() -> None:
    facts = connection.settings_dict
    server = {"host": facts["HOST"], "port": facts["PORT"], "dbname": facts["NAME"],
                  "user": facts["USER"], "password": facts["PASSWORD"]}  # fmt: skip
    location = StorageLocation(
        uri=f"postgres://db:5432/{facts['NAME']}/lost/days",
        connection={"user": facts["USER"], "password": facts["PASSWORD"],
                    "libpq": {"host": facts["HOST"], "port": facts["PORT"]}},
    )  # fmt: skip
    with psycopg.connect(**server, autocommit=True) as session:
        session.execute("CREATE SCHEMA lost")
        try:
            session.execute("CREATE TABLE lost.days (day text, n int)")
            session.execute(
                "CREATE TABLE lost._slicewise_published (asset text, partition text, attempt text,"
                " published_at timestamptz DEFAULT now(), PRIMARY KEY (asset, partition, attempt))"
            )
            session.execute(
                "INSERT INTO lost.days SELECT d, 1 FROM unnest(array['a', 'b', 'c', 'c']) AS d"
            )
            session.execute(
                "INSERT INTO lost._slicewise_published VALUES"
                " ('days', 'day=a', '1-1'), ('days', 'day=b', '9-1'), ('days', 'day=c', '3-1')"
            )
            storage = PostgresStorage(location)
            writers = {
                "day=a": [Writer(run_id=1, attempt="1")],
                "day=b": [Writer(run_id=2, attempt="1")],
                "day=gone": [Writer(run_id=4, attempt="1")],
            }
            kept_paths = storage.remove(writers)
            assert kept_paths == {"day=b": "the data is not the data of the run on record"}
            rows = session.execute("SELECT day FROM lost.days ORDER BY day").fetchall()
            assert [day for (day,) in rows] == ["b", "c", "c"]
            marks = session.execute("SELECT partition FROM lost._slicewise_published ORDER BY 1")
            assert [mark for (mark,) in marks.fetchall()] == ["day=b", "day=c"]
            assert storage.remove(writers) == kept_paths
        finally:
            session.execute("DROP SCHEMA lost CASCADE")


def test_other_cuts_of_a_table_cannot_be_told_apart(days: Asset) -> None:
    uri = "postgres://db:5432/shop/public/days"
    Asset.objects.filter(pk=days.pk).update(canonical_uri=uri)
    AttemptOutlet.objects.update(root=uri)
    days.refresh_from_db()
    definition = PartitionByProduct({"partition": DAILY_2013, "airport": AIRPORTS})
    reason = "its rows cannot be distinguished from rows of present partitions"
    assert set(kept(redefine(days, definition)).values()) == {reason}
    assert set(kept(redefine(days, None)).values()) == {reason}


def test_objects_go_with_their_log(tmp_path: Path) -> None:
    storage = S3Storage(
        StorageLocation(uri="s3://bucket/days", connection={"arrow": f"file://{tmp_path}"})
    )
    home = tmp_path / "days" / "_slicewise"
    for number, (path, attempt) in enumerate([("day=a", "1-1"), ("day=b", "9-1")], 1):
        data = home / "data" / f"_slicewise_attempt={attempt}" / path
        data.mkdir(parents=True)
        (data / "part-0.parquet").write_bytes(b"0123456789")
        (home / "log" / path).mkdir(parents=True)
        (home / "log" / path / f"{number:012}.replace.{attempt}").touch()
    writers = {
        "day=a": [Writer(run_id=1, attempt="1")],
        "day=b": [Writer(run_id=2, attempt="1")],
        "day=gone": [Writer(run_id=3, attempt="1")],
    }
    kept_paths = storage.remove(writers)
    assert kept_paths == {"day=b": "the data is not the data of the run on record"}
    assert storage.measure(["day=a"]) == {"day=a": None}
    files = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    # The log of what was removed says so, since its numbers are never used again; beside it lies
    # the mark for workers that know no such entries.
    assert files == [
        "000000000002.json", "000000000002.replace.9-1", "000001000002.fence-1.0-0-newer",
        "part-0.parquet",
    ]  # fmt: skip
    assert storage.remove(writers) == kept_paths
