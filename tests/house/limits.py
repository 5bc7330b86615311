"""Compare measures with their limits, which may only sink."""

import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.house.measure import Measure

_MOST_NAMED_PLACES = 20
LIMITS = Path(__file__).parent / "limits.toml"
_HEAD = """\
# The most that `make lint` takes of each measure of `python -m tests.house`.
# These numbers only sink: `python -m tests.house --lower` writes today's where they are lower.
"""


def read_limits(file: Path = LIMITS) -> dict[str, float]:
    """Read the limits, by name."""
    return tomllib.loads(file.read_text())


def violations(measures: Iterable[Measure], limits: Mapping[str, float]) -> Iterator[str]:
    """Say of each measure above its limit, or without one, how to mend it; name limits of none."""
    left = dict(limits)
    for measure in measures:
        left.pop(measure.limit_name, None)
        limit = limits.get(measure.limit_name)
        if limit is None:
            yield f"{measure.limit_name} has no limit in {LIMITS.name}."
        elif measure.value > limit:
            yield (
                f"{measure.title}: {measure.value:g}, and the limit is {limit:g}. {measure.advice}"
                f" {_places(measure)}"
            )
    for name in left:
        yield f"{LIMITS.name} has a limit of {name}, which is no measure."


def _places(measure: Measure) -> str:
    """Name the places of a measure, or the command that lists the places, if there are many."""
    places = list(measure.places)
    if 0 < len(places) <= _MOST_NAMED_PLACES:
        return "Places: " + "; ".join(map(str, places)) + "."
    return f"`python -m tests.house --where {measure.limit_name}` lists the places."


def lower_limits(measures: Iterable[Measure], file: Path = LIMITS) -> None:
    """Write the limits anew: of each the lower one of its present value and the measured one."""
    limits = read_limits(file) if file.exists() else {}
    lines = [f"{m.limit_name} = {_lower(m, limits.get(m.limit_name)):g}\n" for m in measures]
    file.write_text(_HEAD + "".join(lines))


def _lower(measure: Measure, limit: float | None) -> float:
    """Return today's value, rounded up to a tenth, unless the limit is lower."""
    today = math.ceil(measure.value * 10) / 10
    return today if limit is None else min(today, limit)
