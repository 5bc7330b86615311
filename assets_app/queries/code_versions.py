"""The versions of the code of a function, and the difference of two versions."""

from collections.abc import Sequence
from difflib import unified_diff
from typing import NamedTuple

from assets_app.models import Producer, ProducerVersion
from slicewise.texts import masked_text

_MOST_VERSIONS = 50
# A longer source is compared by the first lines: to compare takes the square of the length.
_MOST_LINES = 2000


class DiffLine(NamedTuple):
    """A line of a difference; ``kind``: added, removed, header, or empty for an unchanged line."""

    kind: str
    text: str


def versions_of(producer: Producer) -> list[ProducerVersion]:
    """Return the latest versions of the function, newest first, without the source."""
    rows = ProducerVersion.objects.filter(producer=producer).order_by("-id")
    return list(rows.defer("source", "definition")[:_MOST_VERSIONS])


def difference(older: ProducerVersion, newer: ProducerVersion) -> Sequence[DiffLine]:
    """Return the lines in which the newer source differs, with unchanged lines around, masked."""
    lines = unified_diff(
        _lines(older), _lines(newer), older.digest[:12], newer.digest[:12], lineterm=""
    )
    return [DiffLine(_kind(line), line) for line in lines]


def _lines(version: ProducerVersion) -> list[str]:
    return masked_text(version.source).splitlines()[:_MOST_LINES]


def _kind(line: str) -> str:
    if line.startswith(("+++", "---", "@@")):
        return "header"
    return {"+": "added", "-": "removed"}.get(line[:1], "")
