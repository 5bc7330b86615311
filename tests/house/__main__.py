"""`python -m tests.house`: print measures of language and structure; `make lint` has limits."""

import argparse
import sys
from pathlib import Path

from tests.house import docstrings, help_texts, imports, names, sizes
from tests.house.checkout import PROJECT, Checkout
from tests.house.limits import lower_limits, read_limits, violations
from tests.house.measure import Measure


def all_measures(checkout: Checkout) -> list[Measure]:
    """Take all measures of a checkout."""
    modules = (docstrings, help_texts, names, imports, sizes)
    return [measure for module in modules for measure in module.measures(checkout)]


def main(arguments: list[str] | None = None) -> int:
    """Print the measures, or act on an option; return the exit status."""
    options = _parser().parse_args(arguments)
    measures = all_measures(Checkout(options.folder))
    if options.check:
        messages = list(violations(measures, read_limits()))
        sys.stderr.writelines(f"{message}\n" for message in messages)
        return 1 if messages else 0
    if options.lower:
        lower_limits(measures)
    elif options.where:
        (chosen,) = [measure for measure in measures if measure.limit_name == options.where]
        sys.stdout.writelines(f"{place}\n" for place in chosen.places)
    else:
        limits = read_limits()
        sys.stdout.write(f"{'now':>8} {'limit':>8}  measure\n")
        sys.stdout.writelines(_line(measure, limits) for measure in measures)
    return 0


def _line(measure: Measure, limits: dict[str, float]) -> str:
    limit = limits.get(measure.limit_name, 0)
    return f"{measure.value:>8g} {limit:>8g}  {measure.title} ({measure.limit_name})\n"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.house", description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail where a limit is exceeded")
    parser.add_argument("--lower", action="store_true", help="lower limits to the present values")
    parser.add_argument("--where", metavar="MEASURE", help="list the places that a measure counts")
    parser.add_argument("--folder", type=Path, default=PROJECT, help="another checkout")
    return parser


if __name__ == "__main__":
    sys.exit(main())
