"""``python -m bench.connected_alone``: rows 4, 8 and 9 with lineage, alerts, metrics, traces and
lateness off and on, one turn after the other.

Each turn has the machine alone: two stacks at the same time wait for each other's processes, and
two of these rows are waits. The order of the turns changes from pair to pair. `bench.connected`
has both turns at the same time, which suits a machine whose speed changes within minutes.
"""

import argparse
import os
from collections import defaultdict
from statistics import mean, median

from bench import layers, trivial
from bench.connected_stack import ALL_PARTS, started_stack, switched_on
from bench.figures import duration

_ROWS = ("row 4, a trivial run", "row 8, from due to running", "row 9, the next layer")
_OFF: frozenset[str] = frozenset()
# Row 4 is measured so often in each turn.
_TIMES = 3


def main() -> None:
    """Measure in pairs, and print the medians of each turn and of all turns."""
    parser = argparse.ArgumentParser(prog="python -m bench.connected_alone", description=__doc__)
    parser.add_argument("--pairs", type=int, default=4, help="turns of each kind")
    parser.add_argument("--runs", type=int, default=500, help="trivial runs, three times a turn")
    parser.add_argument("--seconds", type=int, default=40, help="seconds of rows 8 and 9 in a turn")
    options = parser.parse_args()
    measured: dict[tuple[str, bool], list[float]] = defaultdict(list)
    ratios: dict[str, list[float]] = defaultdict(list)
    for number in range(options.pairs):
        medians = {}
        for is_on in (False, True) if number % 2 == 0 else (True, False):
            parts = ALL_PARTS if is_on else _OFF
            for row, values in _turn(parts, options.runs, options.seconds).items():
                measured[row, is_on].extend(values)
                medians[row, is_on] = median(values)
        for row in _ROWS:
            off, on = medians[row, False], medians[row, True]
            ratios[row].append(on / off)
            times = f"off {duration(off)}, on {duration(on)}"
            print(f"pair {number + 1}, {row}: {times}, {on / off:.3f} x", flush=True)
    for row in _ROWS:
        off_values, on_values = measured[row, False], measured[row, True]
        print(
            f"{row}, {len(off_values)} and {len(on_values)} values: "
            f"ratio of the medians {median(on_values) / median(off_values):.3f} x, "
            f"of the means {mean(on_values) / mean(off_values):.3f} x, "
            f"median of the pairs {median(ratios[row]):.3f} x"
        )
    print(f"load of the machine now: {os.getloadavg()[0]:.1f}")


def _turn(parts: frozenset[str], runs: int, seconds: int) -> dict[str, list[float]]:
    """Return the seconds of a trivial run, and the waits of the other rows, on two new stacks: runs
    each second would take time from trivial runs.
    """
    with switched_on(parts) as switched:
        with started_stack(switched, ["trivial"]) as whole:
            trivial.timed_runs(whole, 20)  # the first forks of a parent are slower
            trivial_runs = [trivial.timed_runs(whole, runs) / runs for _ in range(_TIMES)]
        with started_stack(switched, ["beat"]) as whole:
            layers.wait_for_calm(whole)
            waits = layers.waits_by_row(whole, seconds)
    return dict(zip(_ROWS, [trivial_runs, *waits], strict=True))


if __name__ == "__main__":
    main()
