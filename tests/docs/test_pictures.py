"""The pictures of the documents are there, are small, and say in words what they show."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.documents import DOCUMENTS, PROJECT

FOLDER = PROJECT / "docs" / "images"
_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)[^)]*\)")
# People read the documents on slow lines too.
_MOST_BYTES, _MOST_BYTES_TOGETHER = 90_000, 350_000
_FEWEST_WORDS = 6


def pictures() -> Iterator[tuple[Path, str, Path]]:
    """Yield each picture in a document: the document, the alternative text, and the file."""
    for document in DOCUMENTS:
        for text, link in _PICTURE.findall(document.read_text()):
            yield document, text, (document.parent / link).resolve()


@pytest.mark.parametrize(("document", "text", "file"), list(pictures()), ids=lambda value: None)
def test_a_picture_exists_and_has_an_alternative_text(
    document: Path, text: str, file: Path
) -> None:
    assert file.is_file(), f"{document.name}: {file}"
    assert len(text.split()) >= _FEWEST_WORDS, f"{document.name}: {file.name} needs more words"


def test_pictures_are_small_and_each_is_shown() -> None:
    sizes = {file: file.stat().st_size for file in FOLDER.iterdir()}
    assert sizes.keys() == {file for _, _, file in pictures()}
    assert max(sizes.values()) <= _MOST_BYTES
    assert sum(sizes.values()) <= _MOST_BYTES_TOGETHER
