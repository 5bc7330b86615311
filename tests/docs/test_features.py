"""The table of features: each row has a guide and a test, or says that it is not built."""

import ast
import re
from functools import cache

import pytest

from tests.docs.documents import LINK, PROJECT

PAGE = PROJECT / "docs/features.md"
NO_TEST = "–"  # noqa: RUF001 - as tables of documents have it
# Each such row names a page that says what to do instead.
MOST_NOT_BUILT = 1


def rows() -> list[tuple[str, str, str, str]]:
    """Return (feature, documents, guide, test) of each row below a heading with such a table."""
    lines = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", PAGE.read_text(), re.MULTILINE)
    return [line for line in lines if line[0] != "feature"]


@cache
def names_of_tests(file: str) -> frozenset[str]:
    """Return the names of the tests in a file below `tests`."""
    tree = ast.parse((PROJECT / "tests" / file).read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return frozenset(f.name for f in functions if f.name.startswith("test_"))


def anchors_of(text: str) -> set[str]:
    """Return the anchors of the headings of a page, as pages of repositories make them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_there_is_a_row_for_each_feature() -> None:
    features = [feature for feature, *_ in rows()]
    assert len(features) == len(set(features)) >= 60
    documents = {number for _, numbers, *_ in rows() for number in numbers.split(", ")}
    assert documents == {"000", "001", "002", "003", "004"}


@pytest.mark.parametrize(("feature", "guide"), [(row[0], row[2]) for row in rows()])
def test_the_guide_of_a_feature_exists(feature: str, guide: str) -> None:
    links = LINK.findall(guide)
    assert links, feature
    for link in links:
        path, _, anchor = link.partition("#")
        page = PAGE.parent / path
        assert page.is_file(), link
        assert not anchor or anchor in anchors_of(page.read_text()), link


@pytest.mark.parametrize(
    ("feature", "named", "guide"), [(row[0], row[3], row[2]) for row in rows()]
)
def test_the_test_of_a_feature_exists(feature: str, named: str, guide: str) -> None:
    if named == NO_TEST:
        assert guide.startswith("not built: "), feature
        return
    names = re.findall(r"`([\w/]+\.py)::(\w+)`", named)
    assert names, feature
    for file, name in names:
        assert name in names_of_tests(file), f"{file}::{name}"


def test_few_features_are_not_built() -> None:
    missing_features = [feature for feature, _, guide, _ in rows() if guide.startswith("not built")]
    assert len(missing_features) <= MOST_NOT_BUILT, missing_features
