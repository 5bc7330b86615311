"""Counts and lists in sentences."""

import pytest

from slicewise.texts import counted, listed


@pytest.mark.parametrize(
    ("number", "expected"), [(0, "0 runs"), (1, "1 run"), (2, "2 runs"), (3_000, "3,000 runs")]
)
def test_a_noun_follows_its_number(number: int, expected: str) -> None:
    assert counted(number, "run") == expected


@pytest.mark.parametrize(
    ("most", "expected"), [(4, "a, b, c"), (3, "a, b, c"), (2, "a, b and 1 more")]
)
def test_of_many_texts_the_first_are_listed(most: int, expected: str) -> None:
    assert listed(["a", "b", "c"], most) == expected
