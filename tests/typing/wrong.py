"""Mistakes that a type checker finds: on the lines marked so, and on no others."""

from typing import Any

from slicewise import (
    Asset,
    AssetValidation,
    Offset,
    PartitionAtRuntime,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionKey,
    asset,
    downstream_partitions,
    normalize_uri,
    upstream_partitions,
)
from slicewise.testing import materialize

DAILY = PartitionByInterval("@daily", start="2024-01-01")


class Position(PartitionKey):
    """A place."""

    x: float
    y: float


# -- keys

here = Position(1.0, 2.5)
Position("a", 2.5)  # error: incompatible type "str"; expected "float"
Position(1.0)  # error: Missing positional argument "y"
Position(1.0, 2.5, z=3.0)  # error: Unexpected keyword argument "z"
here.x = 5.0  # error: Property "x" defined in "Position" is read-only
here.z  # error: "Position" has no attribute "z"


# -- assets


@asset(partiton=DAILY)  # error: Unexpected keyword argument "partiton"
def misspelt() -> None: ...


@asset("orders")  # error: Too many positional arguments
def positional() -> None: ...


@asset(schedule=5)  # error: incompatible type "int"
def scheduled_by_number() -> None: ...


@asset(partition="@daily")  # error: incompatible type "Literal['@daily']"
def cut_by_preset() -> None: ...


@asset(strategy="all")  # error: incompatible type "Literal['all']"
def made_at_once() -> None: ...


@asset(retries="2")  # error: incompatible type "str"; expected "int"
def tried_again() -> None: ...


@asset(write_mode="overwrite")  # error: incompatible type "Literal['overwrite']"
def written_over() -> None: ...


@asset(owners=5)  # error: incompatible type "int"
def owned() -> None: ...


@asset(upstream={"orders": "all"})  # error: expected "Any": "PartitionMapping"
def mapped_by_text() -> None: ...


@asset.multi(schedule="@daily")  # error: Missing named argument "outlets"
def without_outlets() -> None: ...


@asset.multi(outlets=["train", "test"])  # error: expected "Asset"
def outlets_by_name() -> None: ...


@asset()
def orders(spark: Any) -> None: ...


asset(schedule=orders | "prices")  # error: Unsupported operand types for |
Asset("orders", "file:///lake/orders")  # error: Too many positional arguments
Asset("orders", column=["sales"])  # error: Unexpected keyword argument "column"
Asset(5)  # error: incompatible type "int"; expected "str"
materialize(orders, "2024-01-01")  # error: Too many positional arguments
materialize("orders")  # error: incompatible type "str"

# -- definitions

PartitionByInterval(5)  # error: incompatible type "int"
PartitionByInterval("@daily", "UTC")  # error: Too many positional arguments
PartitionByInterval("@daily", tz="UTC")  # error: Unexpected keyword argument "tz"
PartitionByInterval("@daily", start=5)  # error: incompatible type "int"
PartitionBySequence(5)  # error: incompatible type "int"
PartitionByProduct(["@hourly"])  # error: List item 0 has incompatible type "str"
PartitionAtRuntime()  # error: Missing positional argument "name"
DAILY.timezone = 5  # error: Incompatible types in assignment
DAILY.window_at("2024-01-01")  # error: incompatible type "str"; expected "datetime"
DAILY.select(5)  # error: incompatible type "int"; expected "str"
DAILY.select("2024-01-01") | "2024-01-02"  # error: Unsupported operand types for |

# -- what needs what

Offset("a")  # error: incompatible type "str"; expected "int"
upstream_partitions(DAILY, "daily", "2024-01-01")  # error: incompatible type "str"
downstream_partitions(DAILY, DAILY, "2024-01-01", "all")  # error: incompatible type "str"

# -- validations and URIs

AssetValidation.unique("sales", severity="no")  # error: incompatible type "Literal['no']"
AssetValidation.row_count(least=1)  # error: Unexpected keyword argument "least"
normalize_uri(5)  # error: incompatible type "int"; expected "str"

# -- an asset is not called; what comes after such a call is never reached

orders()  # error: "ProducedAsset" not callable
