"""Assets of all kinds: by time, by segment, by both, found at run time, written elsewhere."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from slicewise import (
    All,
    Asset,
    AssetHandle,
    Interval,
    Keys,
    Latest,
    Offset,
    PartitionAtRuntime,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    RunContext,
    asset,
    get_current_context,
)

DAILY = PartitionByInterval("@daily", timezone="Europe/Berlin", start=date(2024, 1, 1))
HOURLY = PartitionByInterval(timedelta(hours=1), start=datetime(2024, 1, 1, tzinfo=UTC))
WORKDAYS = PartitionByInterval("@daily", exclude=["0 0 * * 6,0", date(2024, 12, 25)], name="day")
SHOPS = PartitionBySequence(["mitte", "wedding"], name="shop")
BY_SHOP = PartitionByProduct({"date": DAILY, "shop": SHOPS})
BY_LIST = PartitionByProduct([WORKDAYS, SHOPS])
CUSTOMERS = PartitionAtRuntime(name="customers")

suppliers = Asset("suppliers", uri=Path("/lake/suppliers"), columns={"name": "string"})
prices = Asset(
    "prices",
    uri="s3://bucket/prices",
    kind="table",
    columns=["sku", "price"],
    partition=SHOPS,
)
elsewhere = Asset.ref("elsewhere")


@asset(
    uri="file:///lake/orders",
    partition=DAILY,
    schedule="@daily",
    retries=2,
    refresh=2,
    pending="latest",
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
)
def orders(spark: Any, context: RunContext) -> Any:
    """Return one day of orders."""
    day: Interval = context["partition"].interval
    start: datetime = day.start
    return spark.sql(f"SELECT '{start:%F}' AS day")


@asset(
    name="revenue",
    uri=Path("/lake/revenue"),
    schedule=(orders & suppliers) | elsewhere,
    partition=DAILY,
    upstream={orders: Offset(-6, 0), prices: Latest(), "suppliers": All()},
    strategy=31,
    write_mode="append",
    retry_delay=timedelta(minutes=5),
    timeout=90,
    owners=["ada"],
    tags=("shop",),
    params={"limit": 10},
    spark_conf={"spark.sql.shuffle.partitions": "8"},
)
def takings(
    self: AssetHandle, orders: AssetHandle, prices: AssetHandle, suppliers: AssetHandle
) -> None:
    """Write the sum of a day's orders."""
    first: object = orders.partitions[0]
    name, uri = self.name, self.uri
    assert [first, name, uri]
    self.write(orders.read().join(prices.read(), "sku"))


@asset(partition=BY_SHOP, upstream={"prices": Keys(["mitte"])}, schedule=timedelta(hours=6))
def visits(prices: AssetHandle) -> Any:
    """Return the visitors of one shop on one day."""
    context = get_current_context()
    key = context["partition"].key
    shop: str = key["shop"]
    return prices.read().where(f"shop = '{shop}'")


@asset(partition=CUSTOMERS, schedule="@hourly")
def models(spark: Any) -> None:
    """Add a partition for each customer."""
    for customer in ("ada", "grace"):
        CUSTOMERS.add_partition(key=customer)


@asset(partition="auto", schedule="0 12 * * *")
def noon(context: RunContext, limit: int = 3) -> None:
    """Run from noon to noon."""
    run: int = context["run_id"]
    for past in context["partition"].iter_past_partitions():
        assert [past, run, limit]


@asset(strategy="range", partition=BY_LIST, paused=True)
def by_list() -> None:
    """Run on working days."""


first_column: str = prices.price.name
