"""A search in the errors of runs that does not tell what a masked secret is.

Pages show errors with masks. A search in the stored text would find a secret letter by letter.
"""

from datetime import datetime
from typing import NamedTuple

from django.db.models import F, Func, QuerySet, TextField, Value

from assets_app.models import Run

MOST_SEARCHED = 2_000
"""The number of newest errors that are searched: masks of a million errors take minutes."""
MOST_EXAMINED = 50_000
"""The number of newest errors of all runs that are examined for the errors of filtered runs: a
filter may leave few of a million errors.
"""

# The beginning of each match, in the syntax of PostgreSQL: the last characters before a text that
# `slicewise.texts.masking` may mask.
_NAME = (
    r"(password|passwd|passphrase|(?<![a-z])pass|pwd|secret|token|credentials?"
    r"|(api|access|private|storage|secret)[._-]?key|account[._-]?key(\.[^ \t=:]{1,100})?)"
)
_BEFORE_SECRET = "|".join(
    [
        r"(?<=[a-z0-9+.:-])//(?=[^ \t]*(@|[?&;][^ \t]*=))",
        rf"{_NAME}(=|\\?[\"']?[ \t]{{0,4}}[=:][ \t]{{0,4}}[bfru]{{0,2}}\\?[\"'])",
        r"authorization[\"']?[ \t]{0,4}[=:]",
        r"x-[a-z-]{0,40}(key|token|secret|password)[ \t]{0,4}:",
        r"(?=(AKIA|ASIA)[0-9A-Z]{16})",
        r"(?=(gh[opsur]|github_pat)_)",
    ]
)
# The flag "n" ends each match with the line.
SEARCHED_ERROR = Func(
    F("error"),
    Value(f"({_BEFORE_SECRET}).*"),
    Value(r"\1"),
    Value("gin"),
    function="regexp_replace",
    output_field=TextField(),
)
"""The error of a run, each line up to the first place where a secret may be masked."""


class ErrorSearch(NamedTuple):
    """The runs whose errors have a text, and the searched errors in words; an empty text if all
    errors of the runs are searched.
    """

    rows: QuerySet[Run]
    limit_text: str


class ExaminedRuns(NamedTuple):
    """The runs among whose newest errors those of filtered runs are looked for.

    No filtered run was created before ``since``.
    """

    rows: QuerySet[Run]
    since: datetime | None


class _Unexamined(NamedTuple):
    """The newest run whose error is not examined."""

    pk: int
    created_at: datetime


def searched_for(rows: QuerySet[Run], text: str, examined: ExaminedRuns | None) -> ErrorSearch:
    """Select the runs whose errors contain a text, before a secret in the same line; None examines
    the errors of all the runs.

    The limit does not depend on the text: a limit that counts the errors with the text would tell
    how many have the text in a secret.
    """
    unexamined = None if examined is None else _newest_unexamined(examined.rows)
    # The ids are read first: the database may otherwise mask all examined errors before it looks
    # at the asset of a run.
    newest = _with_error(rows).filter(pk__gt=unexamined.pk if unexamined else 0).order_by("-id")
    ids = list(newest.values_list("pk", flat=True)[: MOST_SEARCHED + 1])
    matching_runs = rows.alias(searched_error=SEARCHED_ERROR).filter(
        # The condition on the stored text costs less and leaves few rows for the last one.
        pk__in=ids[:MOST_SEARCHED],
        error__icontains=text,
        searched_error__icontains=text,
    )
    if len(ids) > MOST_SEARCHED:
        return ErrorSearch(matching_runs, f"newest {MOST_SEARCHED:,} errors")
    since = None if examined is None else examined.since
    if unexamined is None or (since is not None and unexamined.created_at < since):
        return ErrorSearch(matching_runs, "")
    return ErrorSearch(matching_runs, f"newest {MOST_EXAMINED:,} errors of all runs")


def _newest_unexamined(rows: QuerySet[Run]) -> _Unexamined | None:
    newest = _with_error(rows).order_by("-id").values_list("pk", "created_at")
    row = newest[MOST_EXAMINED : MOST_EXAMINED + 1].first()
    return None if row is None else _Unexamined(*row)


def _with_error(rows: QuerySet[Run]) -> QuerySet[Run]:
    """Select the runs with an error: without this condition no query uses the index of errors."""
    return rows.exclude(error="")
