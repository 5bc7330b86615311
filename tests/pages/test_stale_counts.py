"""Numbers of stale partitions of many assets: the same partitions that the grid shows as stale."""

from datetime import timedelta
from random import Random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts_app.models import User
from assets_app.models import Asset, Gateway
from assets_app.queries.graph_states import graph_states
from assets_app.queries.overview import asset_statuses
from assets_app.queries.stale_counts import StaleCount, stale_counts
from assets_app.queries.staleness import newer_inputs, stale_among
from assets_app.queries.strips import strips_of
from partitions_app.state_badges import STALE
from slicewise import Offset, PartitionByInterval, PartitionByProduct, PartitionBySequence
from slicewise.keys import WHOLE
from tests.execution.conftest import make_gateway
from tests.factories import asset, person
from tests.query_plans import rows_read
from tests.scheduling.beats import look, written
from tests.scheduling.scheduled_assets import (
    DAILY,
    HOURLY,
    after,
    all_of,
    any_of,
    at,
    by,
    make_all,
    scheduled,
    write,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def gateway(db: None) -> Gateway:
    return make_gateway("scheduled")


@pytest.fixture
def alice(db: None) -> User:
    return person("alice", is_superuser=True)


def pair(strategy: str) -> tuple[Asset, Asset]:
    """Create hours, and days that are made from the hours."""
    hourly = asset("hourly", HOURLY)
    daily = scheduled(
        "daily", by("hourly"), DAILY, since=at(2024, 1, 1),
        upstream={"hourly": None}, strategy=strategy,
    )  # fmt: skip
    return hourly, daily


@pytest.mark.parametrize("strategy", ["partition", "range"])
def test_a_partition_counts_as_stale_when_an_input_is_newer(
    strategy: str, alice: User, gateway: Gateway
) -> None:
    hourly, daily = pair(strategy)
    write(hourly, "2024-07-01..2024-07-03", gateway, alice)
    write(daily, "2024-07-01..2024-07-03", gateway, alice)
    assert stale_counts([hourly, daily]) == {}
    write(hourly, "2024-07-01T03:00Z,2024-07-01T04:00Z,2024-07-03T05:00Z", gateway, alice)
    days = [f"2024-07-0{day}" for day in (1, 2, 3)]
    assert set(newer_inputs(daily, days)) == {"2024-07-01", "2024-07-03"}
    assert stale_counts([hourly, daily]) == {daily.pk: StaleCount(2)}
    write(daily, "2024-07-01", gateway, alice)
    assert stale_counts([daily]) == {daily.pk: StaleCount(1)}


def test_a_partition_counts_as_stale_when_a_late_input_has_come(
    alice: User, gateway: Gateway
) -> None:
    days = PartitionByInterval("@daily", start="2024-01-01")
    sales, weather = asset("sales", days), asset("weather", days)
    in_time = all_of(by("sales"), by("weather"))
    without = all_of(by("sales"), after(timedelta(hours=6)))
    report = scheduled("report", any_of(in_time, without), days, since=at(2024, 7, 1))
    assets = [sales, weather, report]
    written(sales, "2024-07-01..2024-07-02", at(2024, 7, 3, 1), gateway, alice)
    look(at(2024, 7, 3, 6))
    make_all(report, gateway)
    assert stale_counts(assets) == {}
    written(weather, "2024-07-01", at(2024, 7, 3, 8), gateway, alice)
    assert set(newer_inputs(report, ["2024-07-01", "2024-07-02"])) == {"2024-07-01"}
    assert stale_counts(assets) == {report.pk: StaleCount(1)}
    write(sales, "2024-07-01", gateway, alice)  # for two reasons, and still one partition
    assert stale_counts(assets) == {report.pk: StaleCount(1)}
    write(weather, "2024-07-02", gateway, alice)
    assert stale_counts(assets) == {report.pk: StaleCount(2)}
    write(report, "2024-07-01..2024-07-02", gateway, alice)
    assert stale_counts(assets) == {}


def test_of_very_many_partitions_the_first_ones_are_decided(
    alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    hourly, daily = pair("range")
    write(hourly, "2024-07-01..2024-07-03", gateway, alice)
    write(daily, "2024-07-01..2024-07-03", gateway, alice)
    write(hourly, "2024-07-01T03:00Z,2024-07-02T04:00Z,2024-07-03T05:00Z", gateway, alice)
    monkeypatch.setattr("assets_app.queries.stale_counts.MOST_COUNTED", 2)
    assert stale_counts([hourly, daily]) == {daily.pk: StaleCount(2, is_cut=True)}


FIVE_DAYS = PartitionByInterval("@daily", start="2024-07-01", end="2024-07-06")
SHOP_DAYS = PartitionByProduct({"date": FIVE_DAYS, "shop": PartitionBySequence(["a", "b"])})


@pytest.mark.parametrize("seed", range(4))
def test_strips_have_the_stale_partitions_that_the_changed_inputs_tell(
    seed: int, alice: User, gateway: Gateway
) -> None:
    random = Random(seed)
    hours, shops, whole = asset("hours", HOURLY), asset("shops", SHOP_DAYS), asset("whole")
    readers = []
    for number, definition in enumerate((FIVE_DAYS, SHOP_DAYS, None)):
        for strategy in ("partition", "range"):
            inlets = random.sample(["hours", "shops", "whole"], random.randint(1, 3))
            reader = scheduled(
                f"{strategy}_{number}", all_of(*map(by, inlets)), definition, since=at(2024, 7, 1),
                upstream=dict.fromkeys(inlets), strategy=strategy,
            )  # fmt: skip
            readers.append(reader)
    shifted = scheduled(
        "shifted", by("shops"), FIVE_DAYS, since=at(2024, 7, 1), strategy="range",
        upstream={"shops": Offset(-1, nonexistent="ignore")},
    )  # fmt: skip
    write(hours, "2024-07-01..2024-07-04", gateway, alice)
    write(shops, "date=2024-07-01..2024-07-05 shop=*", gateway, alice)
    write(whole, "", gateway, alice)
    readers.append(shifted)
    for reader in readers:
        write(reader, _span(reader, 1, 4), gateway, alice)
    day = random.randint(1, 4)
    write(hours, f"2024-07-0{day}T0{random.randint(0, 9)}:00Z", gateway, alice)
    write(shops, f"date=2024-07-0{random.randint(1, 4)} shop=b", gateway, alice)
    if seed % 2:
        write(whole, "", gateway, alice)
    for reader in random.sample(readers, 2):
        write(reader, _span(reader, day, 4), gateway, alice)
    strips = strips_of(readers, {}, {reader.pk for reader in readers}, timezone.now())
    stale_numbers = []
    for reader in readers:
        expected_keys = reader.definition.keys() if reader.definition else [WHOLE]
        texts = [key.text for key in expected_keys]
        looks = zip(texts, strips[reader.pk].looks, strict=True)
        stale_keys = {text for text, look in looks if look is STALE}
        assert stale_keys == stale_among(reader, texts)
        stale_numbers.append(len(stale_keys))
    assert 0 < sum(stale_numbers) < 25


@pytest.mark.parametrize("is_partitioned", [True, False])
def test_a_strip_reads_few_inputs_however_many_are_newer(
    is_partitioned: bool, alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assets_app.queries.strips.STRIP_LENGTH", 3)
    hourly = asset("hourly", HOURLY)
    reader = scheduled(
        "reader", by("hourly"), HOURLY if is_partitioned else None, since=at(2024, 7, 1),
        upstream={"hourly": None}, strategy="partition",
    )  # fmt: skip
    for materialized in (hourly, reader, hourly):
        is_whole = materialized == reader and not is_partitioned
        write(materialized, "" if is_whole else "2024-07-01", gateway, alice)
    with CaptureQueriesContext(connection) as statements:
        strips = strips_of([reader], {}, {reader.pk}, at(2024, 7, 2))
    mark_count = 3 if is_partitioned else 1
    assert list(strips[reader.pk].looks) == [STALE] * mark_count
    (stale,) = [query["sql"] for query in statements if "attemptinput" in query["sql"]]
    assert rows_read(stale, table="assets_app_attemptinput") == mark_count


def _span(reader: Asset, first: int, last: int) -> str:
    """Return a selection of days of an asset with all segments."""
    days = f"2024-07-0{first}..2024-07-0{last}"
    if reader.definition is None:
        return ""
    return f"date={days} shop=*" if reader.definition.to_json() == SHOP_DAYS.to_json() else days


@pytest.mark.parametrize("strategy", ["partition", "range"])
def test_many_assets_with_stale_partitions_need_no_more_statements(
    strategy: str, alice: User, gateway: Gateway
) -> None:
    hourly = asset("hourly", HOURLY)
    definition = FIVE_DAYS if strategy == "range" else None
    readers = [
        scheduled(name, by("hourly"), definition, since=at(2024, 7, 1),
                  upstream={"hourly": None}, strategy=strategy)
        for name in ("first", "second", "third")
    ]  # fmt: skip
    write(hourly, "2024-07-01..2024-07-02", gateway, alice)
    for reader in readers:
        write(reader, "2024-07-01..2024-07-02" if definition else "", gateway, alice)
    write(hourly, "2024-07-02", gateway, alice)
    counted = []
    for assets in (readers[:1], readers):
        with CaptureQueriesContext(connection) as statements:
            statuses = asset_statuses(assets)
        assert [status.stale for status in statuses] == [StaleCount(1)] * len(assets)
        for status in statuses:
            assert status.strip
            assert list(status.strip.looks).count(STALE) == 1
        # The keys of changed inputs are read only where the mapping decides.
        has_changed_keys = any("own_attempt" in query["sql"] for query in statements)
        assert has_changed_keys == (strategy == "range")
        counted.append(len(statements))
    assert counted[0] == counted[1] <= 14


def test_no_assets_need_no_statement() -> None:
    assert stale_counts([]) == {}


def test_later_statements_of_the_transaction_keep_their_time() -> None:
    def limit() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            text: str = cursor.fetchone()[0]
            return text

    before = limit()
    graph_states([asset("hourly", HOURLY)], timezone.now())
    assert limit() == before
