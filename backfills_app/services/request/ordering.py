"""The order of items that wait for each other."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def in_order(waits: Mapping[T, Collection[T]]) -> list[T]:
    """Return the keys, each after all keys that it waits for, otherwise in the order given.

    Of keys that wait for each other in a circle the first comes first. Items that are not keys are
    not waited for.
    """
    waiting = {
        key: {blocker for blocker in blockers if blocker in waits} - {key}
        for key, blockers in waits.items()
    }
    ordered: list[T] = []
    while waiting:
        next_key = next(
            (key for key, blockers in waiting.items() if not blockers), next(iter(waiting))
        )
        del waiting[next_key]
        for blockers in waiting.values():
            blockers.discard(next_key)
        ordered.append(next_key)
    return ordered


def circle_of(waits: Mapping[T, Collection[T]]) -> Sequence[T]:
    """Return keys that wait for each other in a circle, the first again at the end; empty without a
    circle.
    """
    graph = {
        key: [blocker for blocker in blockers if blocker != key] for key, blockers in waits.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: Sequence[T] = error.args[1]
        return circle
    return ()
