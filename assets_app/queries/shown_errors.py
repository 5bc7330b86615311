"""A search in the errors of runs as pages show the errors: with masks.

A search in the stored text would find a secret letter by letter, and one that skips errors by the
stored text would tell a secret by the time that the search takes.
"""

from functools import lru_cache
from typing import NamedTuple

from django.db.models import QuerySet

from assets_app.models import Run
from assets_app.queries.run_ids import IdRange
from slicewise.texts import masked_text

MOST_SEARCHED = 2_000
"""The number of newest errors that are searched: masks of a million errors take minutes."""
MOST_EXAMINED = 50_000
"""The number of newest errors of all runs that are examined for the errors of filtered runs: a
filter may leave few of a million errors.
"""


class ErrorSearch(NamedTuple):
    """The runs whose errors have a text, and the searched errors in words; an empty text if all
    errors of the runs are searched.
    """

    rows: QuerySet[Run]
    limit_text: str


class ExaminedRuns(NamedTuple):
    """The runs among whose newest errors those of filtered runs are looked for, in words too; all
    filtered runs have ids in the range.
    """

    rows: QuerySet[Run]
    ids: IdRange
    text: str


def searched_for(rows: QuerySet[Run], text: str, examined: ExaminedRuns | None) -> ErrorSearch:
    """Select the runs whose errors contain a text, in small letters or capitals: one statement
    reads the errors, and one before finds the bound of the examined runs; None examines the errors
    of all the given runs.
    """
    unexamined = None
    if examined is not None:
        unexamined = _newest_unexamined(examined.ids.of(examined.rows))
        rows = examined.ids.of(rows).filter(pk__gt=unexamined or 0)
    newest = _with_error(rows).order_by("-id").values_list("pk", "error")
    errors = list(newest[: MOST_SEARCHED + 1])
    ids = [pk for pk, error in errors[:MOST_SEARCHED] if has_text(shown_error(error), text)]
    limit_text = ""
    if len(errors) > MOST_SEARCHED:
        limit_text = f"newest {MOST_SEARCHED:,} errors"
    elif examined is not None and unexamined is not None:
        limit_text = f"newest {MOST_EXAMINED:,} errors of {examined.text}"
    return ErrorSearch(rows.filter(pk__in=ids), limit_text)


@lru_cache(maxsize=2 * MOST_SEARCHED)
def shown_error(error: str) -> str:
    """Return an error with masks. Many runs fail alike, and a list that polls asks again."""
    return masked_text(error)


def has_text(shown: str, text: str) -> bool:
    """Return whether a shown text has the searched text, in small letters or capitals."""
    return text.casefold() in shown.casefold()


def _newest_unexamined(rows: QuerySet[Run]) -> int | None:
    """Return the id of the newest run whose error is not examined, if any."""
    ids = _with_error(rows).order_by("-id").values_list("pk", flat=True)
    return ids[MOST_EXAMINED : MOST_EXAMINED + 1].first()


def _with_error(rows: QuerySet[Run]) -> QuerySet[Run]:
    """Select the runs with an error: without this condition no query uses the index of errors."""
    return rows.exclude(error="")
