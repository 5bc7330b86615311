"""Assets tried without a server: `slicewise.testing.materialize`."""

import subprocess
import sys
from typing import Any

import pytest

from slicewise import (
    Asset,
    DefinitionError,
    Offset,
    PartitionAtRuntime,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionKeyError,
    SelectionError,
    UnboundedPartitionsError,
    asset,
)
from slicewise.declaring.decorator import ProducedAsset
from slicewise.testing import ValidationFailedError, materialize
from slicewise.validations import validation

DAYS = PartitionByInterval("@daily", start="2013-01-01", end="2014-01-01")
HOURS = PartitionByInterval("@hourly", start="2013-01-01")
SHOPS = PartitionBySequence(["mitte", "a,b", "x/y z"], name="shop")
CUSTOMERS = PartitionAtRuntime("customers")
raw = Asset("raw", partition=HOURS)
lagging = Asset("lagging", partition=DAYS)


def texts(keys: Any) -> list[str]:
    return [str(key) for key in keys]


@asset(partition=DAYS)
def days(context: Any) -> Any:
    return texts(context["partition"].keys)


@asset(partition=SHOPS)
def shops(context: Any) -> Any:
    return list(context["partition"].keys)


@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        ("2013-01-05", ["2013-01-05"]),
        ("2013-01-05..2013-01-06,2013-03-01", ["2013-01-05", "2013-01-06", "2013-03-01"]),
        (DAYS.parse("2013-01-05"), ["2013-01-05"]),
        ([DAYS.parse("2013-01-06"), "2013-01-05", "2013-01-06"], ["2013-01-05", "2013-01-06"]),
        (DAYS.select("2013-01-05..2013-01-06"), ["2013-01-05", "2013-01-06"]),
    ],
)
def test_a_partition_is_a_selection_a_key_a_list_or_a_set(
    partition: Any, expected: list[str]
) -> None:
    assert materialize(days, partition=partition) == expected


@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        ("mitte", ["mitte"]),
        ("a,b", ["a,b"]),  # a segment first of all, and no union
        ("x/y z", ["x/y z"]),
        ("x%2Fy%20z", ["x/y z"]),
        ("*", ["mitte", "a,b", "x/y z"]),
        (["x/y z", "mitte"], ["mitte", "x/y z"]),
    ],
)
def test_segments_are_named_as_they_are_or_by_key_text(partition: Any, expected: list[str]) -> None:
    assert materialize(shops, partition=partition) == expected


def test_products_are_selected_by_dimension() -> None:
    @asset(partition=PartitionByProduct({"day": DAYS, "shop": SHOPS}))
    def visits(context: Any) -> Any:
        key = context["partition"].key
        return str(key["day"]), key["shop"], str(context["partition"].interval)

    result = materialize(visits, partition="day=2013-01-05 shop=mitte")
    assert result == ("2013-01-05", "mitte", "2013-01-05")


@pytest.mark.parametrize(
    ("tried", "partition", "error"),
    [
        (days, "2013-02-30", SelectionError),
        (days, DAYS.select("2013-01-01") - DAYS.select("2013-01-01"), PartitionKeyError),
        (days, [], PartitionKeyError),
        (days, PartitionBySequence([1]).select("1"), PartitionKeyError),
        (days, [DAYS.parse("2013-01-05"), "2012-01-01"], PartitionKeyError),
        (days, 5, PartitionKeyError),
        (days, {"day": 1}, PartitionKeyError),
        (shops, ["nowhere"], PartitionKeyError),
    ],
)
def test_invalid_partitions_are_refused(tried: Any, partition: Any, error: Any) -> None:
    with pytest.raises(error):
        materialize(tried, partition=partition)


@asset(partition=DAYS, upstream={lagging: Offset(-1)})
def reader(raw: Any, lagging: Any, context: Any) -> Any:
    partition = context["partition"]
    assert partition.upstream("raw") == raw.partitions
    return len(raw.partitions), str(raw.partitions[0]), texts(lagging.partitions), lagging.read()


def test_upstream_partitions_are_those_that_the_definitions_and_mappings_say() -> None:
    result = materialize(reader, partition="2013-01-05", upstream={"raw": [], "lagging": "rows"})
    assert result == (24, "2013-01-05T00:00Z", ["2013-01-04"], "rows")


def test_an_upstream_asset_may_be_handed_in_itself() -> None:
    def local() -> Asset:
        return Asset("elsewhere", partition=HOURS)

    @asset(partition=DAYS)
    def tried(elsewhere: Any) -> Any:
        return len(elsewhere.partitions), elsewhere.read()

    result = materialize(tried, partition="2013-01-05..2013-01-06", upstream={local(): "rows"})
    assert result == (48, "rows")


def test_of_an_upstream_asset_that_cannot_be_seen_the_data_is_given_and_the_keys_are_not() -> None:
    @asset(partition=DAYS)
    def tried(elsewhere: Any, context: Any) -> Any:
        with pytest.raises(DefinitionError, match="pass the asset itself"):
            _ = elsewhere.partitions
        with pytest.raises(DefinitionError, match="pass the asset itself"):
            context["partition"].upstream("elsewhere")
        with pytest.raises(KeyError, match="'raw' is no upstream asset"):
            context["partition"].upstream("raw")
        return elsewhere.read(), repr(elsewhere)

    result = materialize(tried, partition="2013-01-05", upstream={"elsewhere": "rows"})
    assert result == ("rows", "<asset elsewhere, whose data is given>")


def test_partitions_without_end_are_not_listed_and_can_still_be_read() -> None:
    @asset()
    def tried(raw: Any) -> Any:
        with pytest.raises(UnboundedPartitionsError):
            _ = raw.partitions
        return raw.read()

    endless = Asset("raw", partition=PartitionByInterval("@hourly"))
    assert materialize(tried, upstream={endless: "rows"}) == "rows"


def test_upstream_data_that_is_missing_or_not_wanted_is_named() -> None:
    with pytest.raises(LookupError, match="reader reads 'lagging', and no data is given"):
        materialize(reader, partition="2013-01-05", upstream={"raw": []})
    with pytest.raises(DefinitionError, match="does not read 'rwa'; the inlets are raw, lagging"):
        materialize(reader, partition="2013-01-05", upstream={"raw": 1, "lagging": 1, "rwa": 1})


def test_the_past_is_handed_in_and_told_as_a_server_would() -> None:
    @asset(partition=DAYS)
    def tried(context: Any) -> Any:
        return texts(context["partition"].iter_past_partitions())

    past = ["2013-01-01", DAYS.parse("2013-01-04"), "2013-01-03", "2013-01-06", "2013-01-05"]
    result = materialize(tried, partition="2013-01-05..2013-01-07", past=past)
    assert result == ["2013-01-04", "2013-01-03", "2013-01-01"]
    assert materialize(tried, partition="2013-01-05") == []

    @asset(partition=SHOPS)
    def timeless(context: Any) -> Any:
        return list(context["partition"].iter_past_partitions())

    result = materialize(timeless, partition="mitte", past=["x/y z", "mitte", "a,b"])
    assert result == ["x/y z", "a,b"]
    with pytest.raises(PartitionKeyError):
        materialize(timeless, partition="mitte", past=["nowhere"])


@asset(partition=CUSTOMERS, params={"fails": False})
def customers(self: Any, context: Any) -> None:
    CUSTOMERS.add_partition(key="known")
    for key in ("a b", 5):
        self.write(f"rows of {key}", partition=key)
    assert context["partition"].keys == ()
    if context["params"]["fails"]:
        raise ZeroDivisionError


def test_keys_that_a_function_finds_are_handed_out_when_it_has_succeeded() -> None:
    discovered: dict[str, list[Any]] = {}
    with pytest.raises(ZeroDivisionError):
        materialize(customers, params={"fails": True}, discovered=discovered)
    assert discovered == {}
    written = materialize(customers, discovered=discovered)
    assert written == {"a b": "rows of a b", 5: "rows of 5"}
    assert discovered == {"customers": ["known", "a b", 5]}


def test_partitions_found_at_run_time_are_made_by_key() -> None:
    @asset(partition=CUSTOMERS)
    def tried(context: Any) -> Any:
        return context["partition"].keys

    assert materialize(tried, partition="a b") == ("a b",)
    assert materialize(tried, partition=[5, "x", 5]) == (5, "x")
    with pytest.raises(PartitionKeyError, match="is no key"):
        materialize(tried, partition=DAYS.parse("2013-01-05"))


def test_functions_that_make_several_assets_return_all_of_them() -> None:
    @asset.multi(outlets=[Asset("left", uri="file:///l"), Asset("right")], partition=DAYS)
    def both(context: Any, self: Any) -> Any:
        frames = {"left": 1, "right": 2, "up": 3}
        assert context["asset"] is self
        assert list(self) == ["left", "right"]
        return {name: frames[name] for name in context["params"]["names"].split()}

    result = materialize(both, partition="2013-01-05", params={"names": "left right"})
    assert result == {"left": 1, "right": 2}
    assert materialize(both.outlets[1], partition="2013-01-05", params={"names": "left right"})
    with pytest.raises(ValueError, match="returned nothing for 'right'"):
        materialize(both, partition="2013-01-05", params={"names": "left"})
    with pytest.raises(ValueError, match=r"returned 'up', which is no outlet.*left, right"):
        materialize(both, partition="2013-01-05", params={"names": "left right up"})


def test_functions_that_make_several_assets_may_write_them() -> None:
    @asset.multi(outlets=[Asset("left", uri="file:///l"), Asset("right", uri="file:///r")])
    def both(self: Any, context: Any) -> Any:
        for name in context["params"]["names"].split():
            self[name].write(f"rows of {name}")
        return {"right": "given back"} if context["params"]["rest"] else None

    both_rows = {"left": "rows of left", "right": "rows of right"}
    assert materialize(both, params={"names": "left right", "rest": False}) == both_rows
    assert materialize(both, params={"names": "left", "rest": True})
    with pytest.raises(ValueError, match="the function of right returned nothing"):
        materialize(both, params={"names": "left", "rest": False})
    with pytest.raises(ValueError, match="right is written already"):
        materialize(both, params={"names": "left right", "rest": True})
    with pytest.raises(KeyError, match="'up' is no outlet; the outlets are left, right"):
        materialize(both, params={"names": "up", "rest": False})


def test_a_function_of_several_assets_returns_a_mapping() -> None:
    @asset.multi(outlets=[Asset("left"), Asset("right")])
    def both() -> Any:
        return "rows"

    with pytest.raises(TypeError, match=r"returns \{name: DataFrame\}, not str"):
        materialize(both)


def test_a_run_of_several_partitions_may_write_them_one_by_one() -> None:
    @asset(partition=DAYS, uri="file:///days")
    def tried(self: Any, context: Any) -> None:
        for key in context["partition"].keys[: context["params"]["wanted"]]:
            self.write(f"rows of {key}", partition=key)

    frames = materialize(tried, partition="2013-01-05..2013-01-06", params={"wanted": 2})
    assert {str(key): frame for key, frame in frames.items()} == {
        "2013-01-05": "rows of 2013-01-05",
        "2013-01-06": "rows of 2013-01-06",
    }
    with pytest.raises(ValueError, match="1 partition of tried is not written: 2013-01-06"):
        materialize(tried, partition="2013-01-05..2013-01-06", params={"wanted": 1})


def test_nothing_of_spark_is_imported_for_a_function_that_does_without() -> None:
    code = """
import sys
from slicewise import asset
from slicewise.declaring.decorator import ProducedAsset
from slicewise.testing import ValidationFailedError, materialize
from slicewise.validations import validation
@asset(uri="file:///x")
def tried(raw, self):
    self.write(raw.read())
assert materialize(tried, upstream={"raw": 3}) == 3
assert not [name for name in sys.modules if name.split(".")[0] in ("pyspark", "django")]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@validation
def has_rows(frame: Any) -> bool:
    return len(frame) > 0


@validation(severity="warn")
def has_many_rows(frame: Any) -> bool:
    return len(frame) > 2


@asset(
    uri="file:///lake/checked",
    partition=DAYS,
    inlet_validations={"raw": [has_rows, has_many_rows]},
    outlet_validations=[has_rows],
)
def checked(raw: Any, self: Any, context: Any) -> None:
    self.write([row for row in raw.read() if row > context["params"].get("least", 0)])


def test_validations_run_before_and_after() -> None:
    day = "2013-01-05"
    assert materialize(checked, partition=day, upstream={"raw": [1, 2, 3]}) == [1, 2, 3]
    with pytest.warns(UserWarning, match="raw: .*has_many_rows"):
        assert materialize(checked, partition=day, upstream={"raw": [1]}) == [1]
    with (
        pytest.warns(UserWarning, match="has_many_rows"),
        pytest.raises(ValidationFailedError, match="raw does not pass has_rows: "),
    ):
        materialize(checked, partition=day, upstream={"raw": []})
    with pytest.raises(ValidationFailedError, match="checked does not pass has_rows: "):
        materialize(checked, partition=day, upstream={"raw": [1, 2, 3]}, params={"least": 5})


def test_data_of_another_program_is_held_to_its_declared_validations() -> None:
    outside = Asset("outside", outlet_validations=[has_rows])

    @asset()
    def reads(outside: Any) -> Any:
        return outside.read()

    assert materialize(reads, upstream={outside: [1]}) == [1]
    with pytest.raises(ValidationFailedError, match="outside does not pass has_rows"):
        materialize(reads, upstream={outside: []})


def test_outlets_made_together_are_validated_each() -> None:
    right = Asset("right", uri="file:///lake/right", outlet_validations=[has_rows])

    @asset.multi(outlets=[Asset("left"), right])
    def both(context: Any) -> Any:
        return {"left": [], "right": context["params"]["rows"]}

    assert materialize(both, params={"rows": [1]}) == {"left": [], "right": [1]}
    with pytest.raises(ValidationFailedError, match="right does not pass has_rows"):
        materialize(both, params={"rows": []})


class Nodes:
    """A set-up and a tear-down that write down what they get."""

    def __init__(self) -> None:
        self.noted: list[object] = []

    def decorate(self, made: ProducedAsset, *, fails: bool = False) -> ProducedAsset:
        @made.setup
        def nodes(context: Any) -> str:
            self.noted.append(str(context["partition"]))
            return "four nodes"

        @made.teardown
        def close(nodes: str, context: Any) -> None:
            self.noted.append((nodes, context["outcome"], context["error"]))
            if fails:
                raise OSError("stuck")

        return made


def guarded(result: Any) -> ProducedAsset:
    @asset(partition=DAYS)
    def guarded(nodes: str, context: Any) -> Any:
        if isinstance(result, BaseException):
            raise result
        return (result, nodes, "outcome" in context)

    return guarded


def test_set_up_and_tear_down_are_called_around_the_function() -> None:
    nodes = Nodes()
    tried = nodes.decorate(guarded("rows"))
    assert materialize(tried, partition="2013-01-05") == ("rows", "four nodes", False)
    assert nodes.noted == ["2013-01-05", ("four nodes", "succeeded", None)]


def test_the_tear_down_is_called_after_an_error() -> None:
    nodes = Nodes()
    with pytest.raises(ValueError, match="fog"):
        materialize(nodes.decorate(guarded(ValueError("fog"))), partition="2013-01-05")
    failed = nodes.noted[-1]
    with pytest.raises(KeyboardInterrupt):
        materialize(nodes.decorate(guarded(KeyboardInterrupt())), partition="2013-01-05")
    assert [failed, nodes.noted[-1]] == [
        ("four nodes", "failed", "ValueError: fog"), ("four nodes", "canceled", None),
    ]  # fmt: skip


def test_a_tear_down_that_fails_is_a_warning() -> None:
    tried = Nodes().decorate(guarded("rows"), fails=True)
    with pytest.warns(UserWarning, match="the teardown failed: OSError: stuck"):
        assert materialize(tried, partition="2013-01-05")[0] == "rows"
    tried = Nodes().decorate(guarded(ValueError("fog")), fails=True)
    with pytest.raises(ValueError, match="fog") as raised:
        materialize(tried, partition="2013-01-05")
    assert raised.value.__notes__ == ["The teardown failed too: OSError: stuck"]


def test_a_set_up_that_fails_is_torn_down_with_none() -> None:
    noted: list[object] = []

    def nodes() -> None:
        raise OSError("no room")

    @asset(setup=nodes, teardown=lambda nodes: noted.append(nodes))
    def lonely(nodes: Any) -> None:
        noted.append("never")

    with pytest.raises(OSError, match="no room"):
        materialize(lonely)
    assert noted == [None]


def test_the_set_up_of_several_assets_is_called_once() -> None:
    noted: list[list[str]] = []

    @asset.multi(outlets=[Asset("left"), Asset("right")])
    def both(prefix: str) -> Any:
        return {"left": prefix, "right": prefix}

    @both.setup
    def prefix(self: Any) -> str:
        noted.append(sorted(self))
        return "x"

    assert materialize(both) == {"left": "x", "right": "x"}
    assert noted == [["left", "right"]]
