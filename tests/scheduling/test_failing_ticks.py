"""A schedule whose tick fails keeps no other from ticking, and says why."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import LazySettings

from accounts_app.models import User
from assets_app.catalogue.services import sync_bundle
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.outputs import Output
from assets_app.models import Asset, AssetPartition, Gateway, ProducerVersion, Run, Schedule
from assets_app.scheduling.ticking import handle_ticks
from slicewise import PartitionByInterval
from slicewise.storage import staging_path
from tests.catalogue.conftest import bundle
from tests.scheduling.scheduled_assets import at, begin, cron, scheduled, waiting

__all__ = ["bundle"]

DAILY = PartitionByInterval("@daily")
HOURLY = PartitionByInterval("@hourly")
BEGAN = at(2024, 7, 1)
pytestmark = pytest.mark.django_db

_HEADER = """
from slicewise import Asset, PartitionByInterval, asset

DAILY = PartitionByInterval("@daily", start="2024-01-01")
"""
_PAIR = (
    _HEADER
    + """
@asset.multi(
    outlets=[Asset("a", uri="file:///lake/a"), Asset("b", uri="file:///lake/b")],
    partition=DAILY, schedule="@daily",
)
def pair(spark):
    ...
"""
)


def begin_all_at_once() -> None:
    """Let all schedules begin at the same moment."""
    Schedule.objects.exclude(rule=None).update(handled_until=BEGAN, next_at=at(2024, 7, 2))


def claimed() -> set[tuple[str, str, str]]:
    """Return producer, asset and key of each held partition."""
    held_partitions = AssetPartition.objects.filter(held_by__isnull=False)
    rows = held_partitions.values_list(
        "held_by__producer_version__producer__name", "asset__name", "key"
    )
    return set(rows)


def break_code(of: Asset) -> ProducerVersion:
    """Remove a field that every run needs from an asset's version; return the version as it was."""
    assert of.producer is not None
    assert of.producer.current_version is not None
    version = ProducerVersion.objects.get(pk=of.producer.current_version.pk)
    ProducerVersion.objects.filter(pk=version.pk).update(
        definition={name: value for name, value in version.definition.items() if name != "strategy"}
    )
    return version


def test_an_outlet_that_moved_while_its_old_file_is_broken_is_made_by_its_new_function(
    bundle: Callable[..., Path], gateway: Gateway
) -> None:
    folder = bundle(f1=_PAIR)
    assert sync_bundle("trials", folder).errors == []
    (folder / "f1.py").write_text(_PAIR + "\n)")
    (folder / "f2.py").write_text(
        _HEADER + '\n@asset(uri="file:///lake/b", partition=DAILY, schedule="@daily")\n'
        "def b(spark): ...\n"
    )
    assert len(sync_bundle("trials", folder).errors) == 1
    begin_all_at_once()
    assert handle_ticks(at(2024, 7, 2)) == 2
    assert claimed() == {("pair", "a", "2024-07-01"), ("b", "b", "2024-07-01")}
    # What the old function writes of b all the same is put nowhere.
    attempt = begin(Run.objects.get(asset__name="a"), gateway)
    output = Output(attempt.run, attempt.row, attempt.keys)
    partitions = [{"key": "2024-07-01", "path": "partition=2024-07-01", "rows": 1, "bytes": 1}]
    for name, disk_name in attempt.row.disk_names(attempt.run.producer_version).items():
        place = Path("/lake") / name
        staging = staging_path(place, attempt.run.pk, disk_name, 1, partitioned=True)
        output.take_staged({"asset": name, "staging": str(staging), "partitions": partitions})
    assert [outlet.asset_id for outlet in output.outlets()] == [attempt.run.asset_id]
    assert attempts.intend_to_publish(attempt.row, output.outlets())
    assert ending.succeed(attempt.row)
    versions = dict(AssetPartition.objects.values_list("asset__name", "version"))
    assert versions == {"a": 1, "b": 0}


def test_an_outlet_that_its_function_has_lost_while_its_file_is_broken_stops_nobody(
    bundle: Callable[..., Path], alice: User
) -> None:
    folder = bundle(f=_PAIR, other=_HEADER + '\n@asset(schedule="@daily")\ndef other(): ...\n')
    assert sync_bundle("trials", folder).errors == []
    (folder / "f.py").write_text(_PAIR + "\n)")
    (folder / "g.py").write_text(_PAIR.replace('Asset("a", uri="file:///lake/a"), ', ""))
    assert len(sync_bundle("trials", folder).errors) == 1
    assert Asset.objects.get(name="a").active, "its last good version stays in force"
    begin_all_at_once()
    assert handle_ticks(at(2024, 7, 2)) == 2
    assert claimed() == {("pair", "b", "2024-07-01"), ("other", "other", "")}


def test_a_tick_that_cannot_be_queued_is_put_off_and_the_others_are_made() -> None:
    daily = [scheduled(f"a{number}", cron("@daily"), DAILY, since=BEGAN) for number in range(9)]
    before = break_code(daily[4])
    assert handle_ticks(at(2024, 7, 2)) == 8
    assert [len(waiting(asset)) for asset in daily] == [1, 1, 1, 1, 0, 1, 1, 1, 1]
    row = Schedule.objects.get(producer=daily[4].producer)
    assert (row.error, row.failures) == ("KeyError: 'strategy'", 1)
    assert (row.failing_since, row.retry_at) == (at(2024, 7, 2), at(2024, 7, 2, 0, 1))
    pauses = []
    for _ in range(7):
        row.refresh_from_db()
        assert row.next_at is not None
        now = row.next_at
        assert handle_ticks(now) == 0
        row.refresh_from_db()
        assert row.next_at is not None
        pauses.append((row.next_at - now).total_seconds() / 60)
    assert pauses == [2, 4, 8, 16, 30, 30, 30]
    before.save()
    handle_ticks(at(2024, 7, 3))
    row.refresh_from_db()
    assert waiting(daily[4]) == ["2024-07-01", "2024-07-02"]
    assert (row.error, row.failures, row.failing_since, row.retry_at) == ("", 0, None, None)


def test_ticks_of_many_assets_are_queued_a_limited_number_of_partitions_at_a_time(
    settings: LazySettings,
) -> None:
    settings.MAX_PARTITIONS_PER_TRANSACTION = 50
    hourly = [scheduled(f"a{number}", cron("@daily"), HOURLY, since=BEGAN) for number in range(5)]
    unpartitioned = scheduled("whole", cron("@daily"), since=BEGAN)
    queued = []
    while handle_ticks(at(2024, 7, 2)):
        queued.append(Run.objects.count())
    assert queued == [48, 96, 121]
    assert {len(waiting(asset)) for asset in hourly} == {24}
    assert waiting(unpartitioned) == [""]


def test_a_tick_of_more_partitions_than_one_transaction_queues_is_queued_alone(
    settings: LazySettings,
) -> None:
    settings.MAX_PARTITIONS_PER_TRANSACTION = 10
    hourly = [scheduled(f"a{number}", cron("@daily"), HOURLY, since=BEGAN) for number in range(2)]
    assert [handle_ticks(at(2024, 7, 2)) for _ in range(3)] == [1, 1, 0]
    assert {len(waiting(asset)) for asset in hourly} == {24}
