"""Segments are shown with their letters, and a shown text can be read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise import PartitionByInterval, PartitionByProduct, PartitionBySequence, PartitionKey
from slicewise.keys.value_texts import key_text_of_readable, readable

REGIONS = PartitionBySequence(["nord", "süd", "a b", "ü|ö"], name="region")


def test_a_definition_shows_letters() -> None:
    assert repr(REGIONS) == "PartitionBySequence([nord, süd, a%20b, ü%7Cö])"


@pytest.mark.parametrize("text", ["süd", "s%C3%BCd"])
def test_a_segment_is_read_with_its_letters_and_with_escapes(text: str) -> None:
    assert REGIONS.parse(text).value == "süd"
    assert REGIONS.select(text).text == "s%C3%BCd"
    by_day = PartitionByProduct({"day": PartitionByInterval("@daily"), "region": REGIONS})
    assert by_day.parse(f"2024-01-01|{text}").text == "2024-01-01|s%C3%BCd"


@given(st.text(min_size=1, max_size=20))
def test_a_readable_text_names_the_same_key(value: str) -> None:
    try:
        text = PartitionKey.of(value).text
    except ValueError:
        return
    assert key_text_of_readable(readable(text)) == text
    assert "|" not in readable(text)
