"""``python -m bench.connected``: the cost of lineage, alerts, metrics, traces and lateness.

The same work is measured with all five switched off and on: rows 4, 8 and 9, a tick of 10,000
assets, and a dispatch. Of row 4 the processor time of all processes is measured too, and of the
kinds of processes that take most. With ``--parts``, row 4 alone is measured: with each part alone,
and with all.

Both turns of a pair run at the same time, each in a separate process and a new database: the speed
of a machine that others use as well changes within minutes by more than the differences measured
here. Each turn takes longer than alone; the ratios count. The turns begin each measurement
together. In row 4 a turn with less work ends first, and the other turn goes on alone: the time
shows half of a difference, the processor time shows the difference.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

from bench import layers, trivial
from bench.connected_stack import ALL_PARTS, PARTS, Switched, started_stack, switched_on
from bench.figures import duration
from bench.paired_turns import answers_of_both, meet
from bench.processes import processor_seconds_by_kind
from bench.running import BUNDLES
from bench.served import prepared_database

_QUEUED_RUNS = 200_000
_LOOKS = 15
_TICKS = 5
# Events, messages and spans of the last runs are sent after these have ended.
_SENT_WITHIN = 10.0
_PROCESSOR_TIME_OF = "row 4, processor time of a trivial run in "
_MOST_KINDS = 4


def main() -> None:
    """Measure in pairs, and print medians and the medians of the ratios."""
    parser = argparse.ArgumentParser(prog="python -m bench.connected", description=__doc__)
    parser.add_argument("--pairs", type=int, default=4, help="pairs of each kind")
    parser.add_argument("--runs", type=int, default=500, help="trivial runs in each turn")
    parser.add_argument("--parts", action="store_true", help="row 4 with each part alone")
    parser.add_argument("--turn", help="one turn alone, with these parts, printed as JSON")
    parser.add_argument("--meets", action="store_true", help="wait for the other turn of a pair")
    options = parser.parse_args()
    if options.turn is not None:
        _print_turn(options)
        return
    kinds = {"on": ",".join(sorted(ALL_PARTS))}
    if options.parts:
        kinds = {**{part: part for part in PARTS}, **kinds}
    pairs: dict[str, list[_Pair]] = {kind: [] for kind in kinds}
    for number in range(options.pairs):
        for kind, names in kinds.items():
            # Each is the first to start in every other pair.
            pair = _pair(names, options, is_off_first=number % 2 == 0)
            pairs[kind].append(pair)
            _print_all(f"pair {number + 1}", kind, [pair])
    for kind in kinds:
        _print_all(f"median of {options.pairs}", kind, pairs[kind])
    print(f"load of the machine now: {os.getloadavg()[0]:.1f}")


class _Pair(NamedTuple):
    """The figures of two turns at the same time."""

    off: dict[str, float]
    on: dict[str, float]


def _print_all(title: str, kind: str, pairs: list[_Pair]) -> None:
    for work in _work_of_all(pairs):
        off, on = (median(figures[work] for figures in turns) for turns in zip(*pairs, strict=True))
        ratio = median(pair.on[work] / pair.off[work] for pair in pairs)
        times = f"off {duration(off)}, {kind} {duration(on)}"
        print(f"{title}, {work}: {times}, {ratio:.3f} x", flush=True)


def _work_of_all(pairs: list[_Pair]) -> list[str]:
    """Return the names of the figures that each turn has."""
    all_figures = [figures for pair in pairs for figures in pair]
    return [work for work in all_figures[0] if all(work in figures for figures in all_figures)]


def _print_turn(options: argparse.Namespace) -> None:
    parts = frozenset(filter(None, options.turn.split(",")))
    meet_other = meet if options.meets else lambda: None
    print(json.dumps(_measured(options.runs, parts, meet_other, has_more=not options.parts)))


def _pair(parts: str, options: argparse.Namespace, *, is_off_first: bool) -> _Pair:
    both = ("", parts) if is_off_first else (parts, "")
    answers = answers_of_both([_command_of_turn(names, options) for names in both])
    figures = dict(zip(both, map(json.loads, answers), strict=True))
    return _Pair(off=figures[""], on=figures[parts])


def _command_of_turn(parts: str, options: argparse.Namespace) -> list[str]:
    command = [sys.executable, "-m", "bench.connected", "--turn", parts, "--meets"]
    return [*command, "--runs", str(options.runs), *(["--parts"] if options.parts else [])]


def _measured(
    runs: int, parts: frozenset[str], meet_other: Callable[[], None], *, has_more: bool
) -> dict[str, float]:
    with switched_on(parts) as switched:
        figures = _on_a_stack(runs, switched, meet_other, has_more=has_more)
        if has_more:
            meet_other()
            figures |= _in_a_database(switched.settings)
    return figures


def _on_a_stack(
    runs: int, switched: Switched, meet_other: Callable[[], None], *, has_more: bool
) -> dict[str, float]:
    """Measure row 4, and rows 8 and 9 if ``has_more``, on a whole stack with these parts."""
    with started_stack(switched) as whole:
        trivial.timed_runs(whole, 20)  # the first forks of a parent are slower
        meet_other()
        before = processor_seconds_by_kind(os.getpid())
        figures = {"row 4, a trivial run": trivial.timed_runs(whole, runs) / runs}
        layers.wait_for_calm(whole)
        time.sleep(_SENT_WITHIN)
        after = processor_seconds_by_kind(os.getpid())
        used = {kind: (after[kind] - before.get(kind, 0.0)) / runs for kind in after}
        figures["row 4, processor time of a trivial run"] = sum(used.values())
        for kind in sorted(used, key=used.__getitem__, reverse=True)[:_MOST_KINDS]:
            figures[f"{_PROCESSOR_TIME_OF}{kind}"] = used[kind]
        if has_more:
            meet_other()
            due, next_layer = layers.waits_by_row(whole)
            figures["row 8, from due to running"] = median(due)
            figures["row 9, the next layer"] = median(next_layer)
    return figures


def _in_a_database(env: dict[str, str]) -> dict[str, float]:
    """Measure ticks and dispatches in this process."""
    with prepared_database(SLICEWISE_BUNDLES=f"bench={BUNDLES / 'minutes'}", **env):
        return _ticks_and_dispatches(has_freshness=bool(env))


def _ticks_and_dispatches(*, has_freshness: bool) -> dict[str, float]:
    # Models can be imported only now: Django reads settings from the environment.
    from assets_app.models import Asset
    from bench import dispatching, overdue, ticks

    ticks.declare()
    if has_freshness:
        overdue.declare()
    figures = [list(ticks.measure("", turn)) for turn in range(_TICKS)]
    asset_ids = list(Asset.objects.filter(bundle__name="many").values_list("id", flat=True))
    dispatching.fill(asset_ids, _QUEUED_RUNS // len(asset_ids))
    dispatching.timed_dispatch()
    return {
        "a tick, none due": median(none_due.seconds for none_due, _ in figures),
        "a tick, 10,000 due": median(all_due.seconds for _, all_due in figures),
        "a dispatch of 10 runs": median(dispatching.timed_dispatch() for _ in range(_LOOKS)),
    }


if __name__ == "__main__":
    main()
