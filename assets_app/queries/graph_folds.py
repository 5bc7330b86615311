"""Folds: groups of assets that the graph draws as one node, so that a graph of any size has few
nodes at first.

Assets are folded by group. Assets without a group are folded by the first word of the name, else
with the assets that they are connected to. A fold with too many members is cut again: by the next
word of the names, else by the alphabet. So each fold, and the graph at first, has at most
``MOST_MEMBERS`` nodes.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

MOST_MEMBERS = 100
# Fewer assets without a group are no crowd.
_FEW = 40
# A fold of fewer members saves no space.
_FEWEST_FOLDED = 3
_WORD = re.compile(r"[^\W_]+[\W_]*")


class FoldKind(StrEnum):
    """The reason why the members of a fold belong together."""

    GROUP = "group"
    PREFIX = "prefix"
    CONNECTED = "connected"
    RANGE = "range"


@dataclass(frozen=True, slots=True)
class Fold:
    """A fold: the label, the reason, the fold that holds it, and the number of its assets."""

    label: str
    kind: FoldKind
    parent: int | None
    size: int


@dataclass(frozen=True, slots=True)
class Folding:
    """All folds, outer folds first, and the innermost fold of each asset, by position."""

    folds: list[Fold]
    fold_of: list[int | None]


@dataclass(frozen=True, slots=True)
class _Member:
    """A member of a fold: an asset, or a fold of further members."""

    label: str
    assets: tuple[int, ...]
    members: "tuple[_Member, ...]" = ()
    kind: FoldKind | None = None


def fold(names: Sequence[str], groups: Sequence[str], edges: Iterable[tuple[int, int]]) -> Folding:
    """Return the folds of assets with these names and groups; edges are pairs of positions."""
    by_group: dict[str, list[_Member]] = defaultdict(list)
    for position, (name, group) in enumerate(zip(names, groups, strict=True)):
        by_group[group].append(_Member(name, (position,)))
    ungrouped = by_group.pop("", [])
    folded_groups = [
        _folded(group, FoldKind.GROUP, members) for group, members in sorted(by_group.items())
    ]
    if len(ungrouped) > _FEW:
        ungrouped = _by_connection(_by_word(ungrouped), edges)
    top = _tidied([*folded_groups, *ungrouped])
    folding = Folding([], [None] * len(names))
    _number(top, None, folding)
    return folding


def _number(members: Iterable[_Member], parent: int | None, folding: Folding) -> None:
    """Give numbers to the folds among the members, and to all folds inside."""
    for member in members:
        if member.kind is None:
            folding.fold_of[member.assets[0]] = parent
            continue
        number = len(folding.folds)
        folding.folds.append(Fold(member.label, member.kind, parent, len(member.assets)))
        _number(member.members, number, folding)


def _folded(label: str, kind: FoldKind, members: Sequence[_Member]) -> _Member:
    """Return a fold of the members, in which further folds keep the number of members small."""
    assets = tuple(asset for member in members for asset in member.assets)
    return _Member(label, assets, tuple(_tidied(members)), kind)


def _tidied(members: Sequence[_Member]) -> list[_Member]:
    """Return at most ``MOST_MEMBERS`` members, of which some are folds of the given members."""
    if len(members) <= MOST_MEMBERS:
        return list(members)
    by_word = _by_word(members)
    return by_word if len(by_word) <= MOST_MEMBERS else _by_alphabet(by_word)


def _by_word(members: Sequence[_Member]) -> list[_Member]:
    """Fold the members by the first word in which the labels of the members differ."""
    first, last = min(member.label for member in members), max(member.label for member in members)
    pairs = enumerate(zip(first, last, strict=False))
    differs_at = next((at for at, (a, b) in pairs if a != b), min(len(first), len(last)))
    word_starts = [word.start() for word in _WORD.finditer(first) if word.start() <= differs_at]
    begin = max(word_starts, default=0)
    return _by_key(members, lambda member: _prefix(member.label, begin), FoldKind.PREFIX)


def _prefix(label: str, begin: int) -> str:
    word = _WORD.match(label, begin)
    return label[: word.end()] if word else label


def _by_connection(members: Sequence[_Member], edges: Iterable[tuple[int, int]]) -> list[_Member]:
    """Fold the members that are no folds with the members that edges connect them to."""
    root: dict[int, int] = {
        member.assets[0]: member.assets[0] for member in members if member.kind is None
    }

    def root_of(asset: int) -> int:
        while root[asset] != asset:
            root[asset] = root[root[asset]]
            asset = root[asset]
        return asset

    for upstream, downstream in edges:
        if upstream in root and downstream in root:
            root[root_of(downstream)] = root_of(upstream)
    single = [member for member in members if member.kind is None]
    folds = [member for member in members if member.kind is not None]
    connected = _by_key(single, lambda member: str(root_of(member.assets[0])), FoldKind.CONNECTED)
    return [*folds, *connected]


def _by_key(
    members: Sequence[_Member], key_of: Callable[[_Member], str], kind: FoldKind
) -> list[_Member]:
    """Fold members with an equal key; the members of small folds stay by themselves.

    If all members have one key, a fold would change nothing, and the members stay as they are.
    """
    by_key: dict[str, list[_Member]] = defaultdict(list)
    for member in members:
        by_key[key_of(member)].append(member)
    if len(by_key) == 1:
        return list(members)
    folded: list[_Member] = []
    for key, same in sorted(by_key.items()):
        if len(same) < _FEWEST_FOLDED:
            folded += same
        else:
            folded.append(_folded(_label(key, same, kind), kind, same))
    return folded


def _label(key: str, members: Sequence[_Member], kind: FoldKind) -> str:
    if kind is FoldKind.PREFIX:
        return f"{key}…"
    return f"{_short(members[0])} and {len(members) - 1} connected"


def _by_alphabet(members: Sequence[_Member]) -> list[_Member]:
    """Cut the members into ranges of the alphabet, of about equal size."""
    ordered = sorted(members, key=lambda member: member.label)
    size = max(MOST_MEMBERS, -(-len(ordered) // MOST_MEMBERS))
    ranges = [ordered[start : start + size] for start in range(0, len(ordered), size)]
    return [
        _folded(
            f"{_short(members_in_range[0])} to {_short(members_in_range[-1])}",
            FoldKind.RANGE,
            members_in_range,
        )
        for members_in_range in ranges
    ]


def _short(member: _Member) -> str:
    return member.label if len(member.label) <= 20 else f"{member.label[:19]}…"
