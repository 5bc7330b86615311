"""Sets found at run time: equal keys of one named set, with a snapshot of the set and without."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slicewise import (
    All,
    Keys,
    Latest,
    PartitionAtRuntime,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionKeyError,
    PartitionSet,
    SelectionError,
    UnboundedPartitionsError,
    downstream_partitions,
    upstream_partitions,
)
from slicewise.keys.product_key import WHOLE
from slicewise.partitions.rows import partition_rows

CUSTOMERS = PartitionAtRuntime(name="active_customers")
KNOWN = CUSTOMERS.known(["bob", "ada", "eve", "ann"])
DAILY = PartitionByInterval("@daily", start="2024-01-01", end="2024-01-04")
NAMES = PartitionBySequence(["ada", "bob"])
picks = st.lists(st.sampled_from("abcde"), unique=True)


def test_a_set_takes_any_keys_where_nobody_says_which_there_are() -> None:
    chosen = PartitionSet.of(CUSTOMERS, ["zoe", "ada"])
    assert (len(chosen), "ada" in chosen, "bob" in chosen) == (2, True, False)
    assert chosen.definition == CUSTOMERS
    assert chosen.text == "zoe,ada"
    assert [row.key for row in partition_rows(CUSTOMERS, ["zoe", "ada"])] == ["zoe", "ada"]
    assert [row.segment for row in partition_rows(CUSTOMERS, chosen)] == ["zoe", "ada"]


def test_with_a_snapshot_only_its_keys_are_there() -> None:
    assert [str(key) for key in PartitionSet.of(KNOWN, ["eve", "ada"])] == ["ada", "eve"]
    with pytest.raises(PartitionKeyError, match="names no partition"):
        PartitionSet.of(KNOWN, ["zoe"])


def test_equal_keys_of_the_same_set_belong_together_whatever_is_known() -> None:
    for downstream in (CUSTOMERS, KNOWN):
        for upstream in (CUSTOMERS, KNOWN, CUSTOMERS.known(["ada"])):
            assert upstream_partitions(downstream, upstream, "ada").text == "ada"
            assert downstream_partitions(upstream, downstream, "ada").text == "ada"


def test_a_key_that_the_upstream_has_not_found_yet_is_told() -> None:
    needed = upstream_partitions(CUSTOMERS, KNOWN, ["ada", "zoe"])
    assert (needed.text, needed.nonexistent.segments) == ("ada", ("zoe",))


@pytest.mark.parametrize("upstream", [NAMES, DAILY, PartitionByProduct([DAILY, NAMES]), None])
def test_no_other_definition_has_the_same_keys_so_all_of_them_are_needed(
    upstream: PartitionBySequence | PartitionByInterval | PartitionByProduct | None,
) -> None:
    key = WHOLE if upstream is None else upstream.keys()[0]
    assert upstream_partitions(upstream, KNOWN, key).text == "bob,ada,eve,ann"
    assert len(upstream_partitions(KNOWN, upstream, "ada")) == (
        1 if upstream is None else upstream.count()
    )
    assert downstream_partitions(KNOWN, upstream, "ada") == upstream_partitions(
        KNOWN, upstream, "ada"
    )
    with pytest.raises(UnboundedPartitionsError, match="found at run time"):
        upstream_partitions(upstream, CUSTOMERS, key)


def test_a_set_of_another_name_has_other_keys() -> None:
    former_customers = PartitionAtRuntime("former_customers").known(["ada", "ian"])
    assert upstream_partitions(KNOWN, former_customers, "ada").text == "ada,ian"


def test_mappings_know_sets_found_at_run_time() -> None:
    day = DAILY.parse("2024-01-02")
    assert upstream_partitions(DAILY, KNOWN, day, Latest()).text == "ann"
    assert downstream_partitions(KNOWN, DAILY, "ann", Latest()).text == "2024-01-01..2024-01-03"
    assert not downstream_partitions(KNOWN, DAILY, "ada", Latest())
    assert len(upstream_partitions(DAILY, KNOWN, day, All())) == 4
    needed = upstream_partitions(DAILY, KNOWN, day, Keys(["ada", "zoe"]))
    assert (needed.text, needed.nonexistent.segments) == ("ada", ("zoe",))
    assert upstream_partitions(DAILY, CUSTOMERS, day, Keys(["zoe"])).text == "zoe"
    for mapping in (Latest(), All()):
        with pytest.raises(UnboundedPartitionsError):
            upstream_partitions(DAILY, CUSTOMERS, day, mapping)


@given(
    first=picks,
    second=picks,
    first_known=st.permutations("abcdefg"),
    second_known=st.permutations("abcdeh"),
)
@settings(max_examples=80, deadline=None)
def test_sets_of_different_snapshots_obey_the_algebra_of_sets(
    first: list[str], second: list[str], first_known: list[str], second_known: list[str]
) -> None:
    for left_of in (CUSTOMERS, CUSTOMERS.known(first_known)):
        for right_of in (CUSTOMERS, CUSTOMERS.known(second_known)):
            left_set, right_set = PartitionSet.of(left_of, first), PartitionSet.of(right_of, second)
            assert _values(left_set | right_set) == set(first) | set(second)
            assert _values(left_set & right_set) == set(first) & set(second)
            assert _values(left_set - right_set) == set(first) - set(second)
            assert (left_set == right_set) == (set(first) == set(second))
            assert left_set != right_set or hash(left_set) == hash(right_set)


def _values(partitions: PartitionSet) -> set[object]:
    return {key.value for key in partitions}


def test_sets_of_different_names_do_not_mix() -> None:
    with pytest.raises(PartitionKeyError, match="different"):
        PartitionSet.of(CUSTOMERS, ["a"]) | PartitionSet.of(PartitionAtRuntime("others"), ["a"])


def test_selections_read_the_snapshot() -> None:
    assert KNOWN.select("a*").text == "ada,ann"
    assert KNOWN.select("active_customers=ada..ann").text == "ada,eve,ann"
    assert len(KNOWN.select("*")) == 4
    with pytest.raises(SelectionError, match="did you mean"):
        KNOWN.select("adda")


def test_without_a_snapshot_a_selection_names_each_key() -> None:
    assert CUSTOMERS.select("zoe, a%20b; active_customers=ian").text == "zoe,a%20b,ian"
    for text, position in [("*", 0), ("zoe,a*", 4), ("zoe..ian", 0)]:
        with pytest.raises(SelectionError, match="not known here: name each") as refused:
            CUSTOMERS.select(text)
        assert refused.value.position == position


@given(keys=picks, later=picks)
@settings(max_examples=50, deadline=None)
def test_the_text_of_a_set_means_the_same_when_more_keys_are_found(
    keys: list[str], later: list[str]
) -> None:
    chosen = PartitionSet.of(CUSTOMERS.known(keys), keys)
    if keys:
        assert CUSTOMERS.known([*later, *keys]).select(chosen.text) == chosen
        assert CUSTOMERS.select(chosen.text) == chosen


def test_an_empty_snapshot_has_no_partitions() -> None:
    empty = CUSTOMERS.known([])
    assert not PartitionSet.of(empty, [])
    assert not upstream_partitions(DAILY, empty, DAILY.parse("2024-01-02"))
    assert not upstream_partitions(DAILY, empty, DAILY.parse("2024-01-02"), Latest())
    with pytest.raises(SelectionError):
        empty.select("a*")
