"""What a deployment has on record, in the form in which two deployments are compared."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from tests.simulation.drawn_actions import Partition

# Asset, partition, version, trigger, when made.
Record = tuple[str, Partition, int, str, datetime]

# Asset, partition, what was late when the run was queued, trigger, when the run was queued, and how
# the run ended for the partition, with the number of attempts.
Request = tuple[str, Partition, str, str, datetime, str]

# Asset, its identity, partition, settled state, why skipped, version, trigger of the run that
# holds the partition. A missing partition that no run holds has no entry.
PartitionEntry = tuple[str, str, Partition, str, str, int, str]

# Asset, partition, version, and one input: upstream asset, partition, version.
InputEntry = tuple[str, Partition, int, str, Partition, int]

# The numbers of partitions that ticks have queued, found materialized, found in flight, and passed
# over.
TickNumbers = tuple[int, int, int, int]

# Asset, first and last instant, number of ticks, why nothing was queued, and the numbers.
TickEntry = tuple[str, datetime, datetime, int, str, TickNumbers]


@dataclass(frozen=True)
class Outcome:
    """The record of a deployment."""

    versions: Sequence[Record]
    requests: Sequence[Request]
    partitions: Sequence[PartitionEntry]
    inputs: Sequence[InputEntry]
    ticks: Sequence[TickEntry]


def differences(product: Outcome, reference: Outcome) -> list[str]:
    """Return the entries that only one of the outcomes has, the earliest of each kind first."""
    return [
        line
        for kind in (field.name for field in fields(Outcome))
        for line in _lines(kind, getattr(product, kind), getattr(reference, kind))
    ]


def _lines(kind: str, product: Iterable[Any], reference: Iterable[Any]) -> list[str]:
    actual, expected = Counter(product), Counter(reference)
    lines = [(_at(entry), "product", entry) for entry in (actual - expected).elements()]
    lines += [(_at(entry), "reference", entry) for entry in (expected - actual).elements()]
    return [
        f"{kind}, only the {side}: {_text(entry)}"
        for _, side, entry in sorted(lines, key=lambda line: (line[0], repr(line[2]), line[1]))
    ]


def _at(entry: Sequence[object]) -> str:
    """Return the time of an entry as a text; the start of its window, if it has no time."""
    times = [fact for fact in entry if isinstance(fact, datetime)]
    starts = [fact[0] for fact in entry if isinstance(fact, tuple) and fact[0] is not None]
    return min((moment.isoformat() for moment in times or starts), default="")


def _text(fact: object) -> str:
    if isinstance(fact, datetime):
        return f"{fact:%m-%dT%H:%M}Z"
    if isinstance(fact, tuple):
        return " ".join(filter(None, map(_text, fact)))
    return "" if fact is None else str(fact)
