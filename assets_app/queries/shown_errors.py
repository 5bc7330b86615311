"""A search in the errors of runs that does not tell what a masked secret is.

Pages show errors with masks. A search in the stored text would find a secret letter by letter.
"""

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


class SearchLimit(NamedTuple):
    """The newest run whose error is not searched, and the searched errors in words; None and an
    empty text if all errors are searched.
    """

    last_unsearched: int | None = None
    text: str = ""


def having_error(rows: QuerySet[Run], text: str, last_unsearched: int | None) -> QuerySet[Run]:
    """Select the runs whose errors contain a text, before a secret in the same line; only errors
    after the run ``last_unsearched``, of ``search_limit``, are searched.
    """
    # The condition on the stored text costs less and leaves few rows for the last one.
    return (
        _with_error(rows)
        .alias(searched_error=SEARCHED_ERROR)
        .filter(pk__gt=last_unsearched or 0, error__icontains=text, searched_error__icontains=text)
    )


def search_limit(rows: QuerySet[Run], *, is_filtered: bool) -> SearchLimit:
    """Return the limit of a search in the errors of the given runs: one statement, and another one
    before if the runs are filtered.

    The text does not matter: a limit that counts the errors with the text would tell how many have
    the text in a secret.
    """
    last_unexamined = _id_after(MOST_EXAMINED, Run.objects.all()) if is_filtered else None
    examined = rows.filter(pk__gt=last_unexamined) if last_unexamined else rows
    if last_unsearched := _id_after(MOST_SEARCHED, examined):
        return SearchLimit(last_unsearched, f"newest {MOST_SEARCHED:,} errors")
    if last_unexamined:
        return SearchLimit(last_unexamined, f"newest {MOST_EXAMINED:,} errors of all runs")
    return SearchLimit()


def _id_after(number: int, rows: QuerySet[Run]) -> int | None:
    """Return the id of the next run after so many of the newest runs with an error, if any."""
    ids = _with_error(rows).order_by("-id").values_list("pk", flat=True)
    return ids[number : number + 1].first()


def _with_error(rows: QuerySet[Run]) -> QuerySet[Run]:
    """Select the runs with an error: without this condition no query uses the index of errors."""
    return rows.exclude(error="")
