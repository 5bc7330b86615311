"""Outcomes of the validations of several runs, counted."""

from collections import Counter
from collections.abc import Collection

from django.db.models import Count

from assets_app.models import ValidationResult

# As pages show the outcomes: failures first.
_ORDER = ("failed", "not_evaluated", "warned", "not_evaluated_warned", "passed")
Outcomes = list[tuple[str, int]]


def outcomes_of_runs(run_ids: Collection[int]) -> dict[int, Outcomes]:
    """Return the number of each outcome by run, of the last attempt with results: one statement.

    A run without results is left out.
    """
    if not run_ids:
        return {}
    rows = ValidationResult.objects.filter(attempt__run__in=run_ids).order_by("attempt__number")
    columns = ("attempt__run", "attempt__number", "passed", "severity", "evaluated")
    last_attempts: dict[int, int] = {}
    counts: dict[int, Counter[str]] = {}
    for run, number, passed, severity, evaluated, count in rows.values_list(*columns, Count("pk")):
        if last_attempts.get(run) != number:
            last_attempts[run], counts[run] = number, Counter()
        result = ValidationResult(passed=passed, severity=severity, evaluated=evaluated)
        counts[run][result.outcome] += count
    return {
        run: [(outcome, of_run[outcome]) for outcome in _ORDER if of_run[outcome]]
        for run, of_run in counts.items()
    }
