"""A measure of the checkout: one number that is wanted small, with the places behind it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_WORDS = Path(__file__).parent / "words"


@dataclass(frozen=True)
class Measure:
    """A number that is wanted small.

    `limit_name` is its key in limits.toml, `advice` tells how to lower the number, and `places`
    names the counted places, each as path, line and word.
    """

    limit_name: str
    title: str
    value: float
    places: Sequence[str]
    advice: str


def word_list(name: str) -> frozenset[str]:
    """Read the words of a file in `words/`: separated by blanks or lines, `#` begins a comment."""
    lines = (_WORDS / f"{name}.txt").read_text().splitlines()
    return frozenset(word for line in lines for word in line.partition("#")[0].split())


def share(count: int, total: int, scale: int) -> float:
    """Return `count` per `scale` of `total`, and 0 of an empty total."""
    return round(count * scale / total, 2) if total else 0.0
