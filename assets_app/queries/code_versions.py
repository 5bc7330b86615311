"""The versions of the code of a function, and the difference of two versions."""

import hashlib
import json
from collections.abc import Sequence
from difflib import unified_diff
from typing import NamedTuple

from assets_app.models import Producer, ProducerVersion
from slicewise.texts import masked_json, masked_text

_MOST_VERSIONS = 50
# Longer texts are compared by the first lines: to compare takes the square of the length.
_MOST_LINES = 2000
_MOST_LINES_OF_FIELD = 200
# The position of the function in its file, which moves with each line above, and the source.
_NOT_DECLARED = ("line", "source")


class DiffLine(NamedTuple):
    """A line of a difference; ``kind``: added, removed, header, or empty for an unchanged line."""

    kind: str
    text: str


class VersionDifference(NamedTuple):
    """The differing lines of the declarations and of the sources of two versions."""

    declaration: Sequence[DiffLine]
    source: Sequence[DiffLine]


def versions_of(producer: Producer) -> list[ProducerVersion]:
    """Return the latest versions of the function, newest first, without the source."""
    rows = ProducerVersion.objects.filter(producer=producer).order_by("-id")
    return list(rows.defer("source", "definition")[:_MOST_VERSIONS])


def difference(older: ProducerVersion, newer: ProducerVersion) -> VersionDifference:
    """Return the lines in which the newer declaration and the newer source differ, with unchanged
    lines around, masked.
    """
    names = older.digest[:12], newer.digest[:12]
    return VersionDifference(
        _diff(_declaration_lines(older), _declaration_lines(newer), names),
        _diff(_source_lines(older), _source_lines(newer), names),
    )


def _diff(older_lines: list[str], newer_lines: list[str], names: tuple[str, str]) -> list[DiffLine]:
    lines = unified_diff(
        _cut(older_lines, _MOST_LINES), _cut(newer_lines, _MOST_LINES), *names, lineterm=""
    )
    return [DiffLine(_kind(line), line) for line in lines]


def _source_lines(version: ProducerVersion) -> list[str]:
    return masked_text(version.source).splitlines()


def _declaration_lines(version: ProducerVersion) -> list[str]:
    """Return schedule, partition definitions and options as sorted JSON, a line for each value."""
    declared = {
        name: value for name, value in version.definition.items() if name not in _NOT_DECLARED
    }
    lines: list[str] = []
    for name, value in sorted(masked_json(declared).items()):
        text = json.dumps({name: value}, indent=2, sort_keys=True, ensure_ascii=False)
        # A partition definition may have thousands of values, and other fields follow.
        lines += _cut(text.splitlines()[1:-1], _MOST_LINES_OF_FIELD)
    return lines


def _cut(lines: list[str], most: int) -> list[str]:
    """Return the first lines, and a line that differs where the rest differs."""
    rest = lines[most:]
    if not rest:
        return lines
    digest = hashlib.sha256("\n".join(rest).encode()).hexdigest()[:12]
    return [*lines[:most], f"… {len(rest):,} more lines, SHA-256 {digest}"]


def _kind(line: str) -> str:
    if line.startswith(("+++", "---", "@@")):
        return "header"
    return {"+": "added", "-": "removed"}.get(line[:1], "")
