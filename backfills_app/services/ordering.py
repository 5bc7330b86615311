"""The order of things that wait for each other."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def in_order(waits: Mapping[T, Collection[T]]) -> list[T]:
    """Return the keys, each after all that it waits for, otherwise as they are given.

    Of those that wait for each other in a circle the first comes first. What is no key is not
    waited for.
    """
    left = {
        key: {other for other in others if other in waits} - {key} for key, others in waits.items()
    }
    ordered: list[T] = []
    while left:
        free = next((key for key, others in left.items() if not others), next(iter(left)))
        del left[free]
        for others in left.values():
            others.discard(free)
        ordered.append(free)
    return ordered


def circle_of(waits: Mapping[T, Collection[T]]) -> Sequence[T]:
    """Return keys that wait for each other in a circle, the first at the end again; none where
    nothing does.
    """
    own = {key: [other for other in others if other != key] for key, others in waits.items()}
    try:
        TopologicalSorter(own).prepare()
    except CycleError as error:
        found: Sequence[T] = error.args[1]
        return found
    return ()
