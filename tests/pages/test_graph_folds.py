"""Folds of the asset graph: few nodes at first, and never too many in one fold."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from assets_app.queries.graph_folds import MOST_MEMBERS, Folding, FoldKind, fold


def labels(folding: Folding) -> list[str]:
    return [found.label for found in folding.folds]


def members_of(folding: Folding) -> Counter[int | None]:
    """Count the nodes that each fold shows when it is unfolded; None stands for the graph."""
    return Counter([*folding.fold_of, *(found.parent for found in folding.folds)])


def test_assets_are_folded_by_group() -> None:
    folding = fold(["a", "b", "c"], ["raw", "", "raw"], [])
    assert labels(folding) == ["raw"]
    assert folding.folds[0].kind is FoldKind.GROUP
    assert folding.folds[0].size == 2
    assert folding.fold_of == [0, None, 0]


def test_a_few_assets_without_a_group_are_not_folded() -> None:
    names = [f"sales_{number}" for number in range(40)]
    assert fold(names, [""] * 40, []).folds == []


def test_many_assets_without_a_group_are_folded_by_the_first_word() -> None:
    names = [f"{word}_{number}" for word in ("sales", "stock") for number in range(30)]
    folding = fold(names, [""] * 60, [])
    assert labels(folding) == ["sales_…", "stock_…"]
    assert folding.fold_of == [0] * 30 + [1] * 30


def test_assets_without_a_common_word_are_folded_by_their_edges() -> None:
    names = [f"{'ab'[number % 2]}{number:02}x" for number in range(50)]
    edges = [(number, number + 2) for number in range(48)]
    folding = fold(names, [""] * 50, edges)
    assert labels(folding) == ["a00x and 24 connected", "b01x and 24 connected"]
    assert {found.kind for found in folding.folds} == {FoldKind.CONNECTED}
    assert folding.fold_of == [number % 2 for number in range(50)]


def test_a_large_group_is_cut_by_the_next_word() -> None:
    names = [f"mart_{word}_{number}" for word in ("de", "fr", "us") for number in range(50)]
    folding = fold(names, ["mart"] * 150, [])
    assert labels(folding) == ["mart", "mart_de_…", "mart_fr_…", "mart_us_…"]
    assert [found.parent for found in folding.folds] == [None, 0, 0, 0]


def test_names_that_share_no_word_are_cut_by_the_alphabet() -> None:
    names = [f"t{number:05}" for number in range(5_000)]
    folding = fold(names, [""] * 5_000, [])
    assert max(members_of(folding).values()) <= MOST_MEMBERS
    assert folding.folds[0].label == "t00000 to t00099"
    assert folding.folds[0].kind is FoldKind.RANGE


def test_thousands_of_groups_are_folded_as_well() -> None:
    groups = [f"team{number:04}" for number in range(3_000)]
    folding = fold([f"x{number}" for number in range(3_000)], groups, [])
    assert max(members_of(folding).values()) <= MOST_MEMBERS


@given(
    st.lists(
        st.tuples(
            st.text(alphabet="ab_.-", min_size=1, max_size=9), st.sampled_from(["", "g", "h"])
        ),
        max_size=400,
        unique_by=lambda pair: pair[0],
    )
)
def test_every_asset_is_in_one_fold_at_most_and_no_fold_is_too_large(
    pairs: list[tuple[str, str]],
) -> None:
    names, groups = [name for name, _ in pairs], [group for _, group in pairs]
    folding = fold(names, groups, [(n, n + 1) for n in range(len(names) - 1)])
    assert max(members_of(folding).values(), default=0) <= MOST_MEMBERS
    sizes = Counter[int]()
    for number in folding.fold_of:
        while number is not None:
            sizes[number] += 1
            number = folding.folds[number].parent
    assert sizes == {number: found.size for number, found in enumerate(folding.folds)}
