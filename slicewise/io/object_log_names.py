"""Log entries of older releases: empty objects, with a single fact in each name.

Buckets contain such entries until the next publication of the partition, and as long as workers of
older releases run. Such workers count on from the highest of these names: beside each log lies a
marker far above the entries, for older workers alone, so that older workers give publications a
number above the entries too.
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
    """Return the name of the marker from which older workers count on: a fence of no attempt."""
    return f"{number + _FAR:012}{_MARK}"


def is_mark(name: str) -> bool:
    """Return whether a name is the name of such a marker, and not of an entry."""
    return name.endswith(_MARK)


def number_in_name(name: str) -> int | None:
    """Return the number of an entry of an older release; None for any other name."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def state_of_names(names: Sequence[str], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the combined content of entries of older releases, in the form of a complete entry.

    ``before`` is the content of the complete entry below all of them.
    """
    matches = sorted((match for name in names if (match := _NAME.fullmatch(name))), key=_rank)
    fences: dict[str, int] = dict(before["fences"])
    versions: dict[str, str] = dict(before["versions"])
    lists = {name: list(before[name]) for name in ("data", "repeats", "old")}
    content: dict[str, Any] = {"outside": before["outside"], **lists}
    for number, mode, attempt in (match.groups() for match in matches):
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
    attempts_in_use = {*versions.values(), *content["data"]}
    content["old"] = [attempt for attempt in content["old"] if attempt not in attempts_in_use]
    return {**content, "versions": versions, "fences": fences}


def _rank(match: re.Match[str]) -> tuple[int, int, int, str]:
    """Return the position in the log: of two entries with one number, the
    later attempt comes later.
    """
    name = _ATTEMPT.match(match[3])
    run, attempt = (int(name[1]), int(name[2])) if name else (0, 0)
    return int(match[1]), run, attempt, match[3]
