"""Entries of logs as they were before each said all: empty objects, whose names say one thing each.

Buckets have them until the next publication of the partition, and where workers of that time are
still there. These count on from the highest of such names: beside each log there is one far above
its entries, for them alone, so that what they publish has a number above them too.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

_FENCE = "fence-"
_NAME = re.compile(rf"(\d{{12}})\.(replace|append|version|same|{_FENCE}\d+)\.(.+)")
_ATTEMPT = re.compile(r"(\d+)-(\d+)")
_MARK = f".{_FENCE}1.0-0-newer"
_FAR = 1_000_000


def mark_above(number: int) -> str:
    """Return the name from which workers of that time count on: a fence of no attempt."""
    return f"{number + _FAR:012}{_MARK}"


def is_mark(name: str) -> bool:
    """Return whether a name is such a mark, and no entry."""
    return name.endswith(_MARK)


def number_in_name(name: str) -> int | None:
    """Return the number of such an entry; None for any other name."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def state_of_names(names: Sequence[str], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the entries of these names say together, as the content of one that says all.

    ``before`` is the content of the entry that says all below them.
    """
    found = sorted((match for name in names if (match := _NAME.fullmatch(name))), key=_rank)
    fences: dict[str, int] = dict(before["fences"])
    versions: dict[str, str] = dict(before["versions"])
    lists = {name: list(before[name]) for name in ("data", "repeats", "old")}
    content: dict[str, Any] = {"outside": before["outside"], **lists}
    for number, mode, attempt in (match.groups() for match in found):
        if mode.startswith(_FENCE):
            fence = int(mode.removeprefix(_FENCE))
            fences[attempt] = max(fence, fences.get(attempt, 0))
            continue
        if mode in ("replace", "version"):
            content["old"] += content["data"]
            content |= {"data": [], "outside": False, "repeats": []}
        if mode == "version":
            versions[str(int(number))] = attempt
        kind = "repeats" if mode == "same" else "data"
        if attempt not in content[kind]:
            content[kind].append(attempt)
    kept = {*versions.values(), *content["data"]}
    content["old"] = [attempt for attempt in content["old"] if attempt not in kept]
    return {**content, "versions": versions, "fences": fences}


def _rank(match: re.Match[str]) -> tuple[int, int, int, str]:
    """The place in the log: of two with one number the later attempt is the later entry."""
    name = _ATTEMPT.match(match[3])
    run, attempt = (int(name[1]), int(name[2])) if name else (0, 0)
    return int(match[1]), run, attempt, match[3]
