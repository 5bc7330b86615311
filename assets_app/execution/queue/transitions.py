"""Changes of runs' states: every change is a compare-and-swap along the table of transitions."""

from collections.abc import Iterable
from typing import Any

from django.db import connection
from django.db.models.functions import Now
from psycopg import sql

from assets_app.models import TERMINAL_STATES, TRANSITIONS, Run, RunState


class UnknownTransition(ValueError):
    """A transition that the table does not have: a mistake of the caller."""


def move(run_id: int, old: RunState, new: RunState, **fields: Any) -> bool:
    """Move a run from ``old`` to ``new`` and set the fields; return whether the run was in ``old``.

    A run in another state is left unchanged.
    """
    _check(old, new)
    return Run.objects.filter(pk=run_id, state=old).update(state=new, **fields) == 1


def move_all(
    run_ids: Iterable[int],
    old: RunState,
    new: RunState,
    *,
    skip_locked: bool = False,
    **fields: Any,
) -> list[int]:
    """Move the runs in ``old`` to ``new`` and set the fields; return the ids of the moved runs.

    Rows are locked in the order of ids. A field that is to be the present time is given as
    ``Now()``. With ``skip_locked``, runs that another transaction holds are left unchanged.
    """
    _check(old, new)
    # The present time by the database's clock costs no statement of its own.
    values = {name: value for name, value in fields.items() if not isinstance(value, Now)}
    names = [
        *(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in values),
        *(
            sql.SQL("{} = statement_timestamp()").format(sql.Identifier(name))
            for name in fields.keys() - values.keys()
        ),
    ]
    statement = sql.SQL(
        "UPDATE {table} SET {settings} WHERE id IN "
        "(SELECT id FROM {table} WHERE id = ANY(%s) AND state = %s ORDER BY id FOR UPDATE{skip}) "
        "AND state = %s RETURNING id"
    ).format(
        table=sql.Identifier(Run._meta.db_table),
        settings=sql.SQL(", ").join([sql.SQL("state = %s"), *names]),
        skip=sql.SQL(" SKIP LOCKED" if skip_locked else ""),
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [new, *values.values(), list(run_ids), old, old])
        return sorted(row[0] for row in cursor.fetchall())


def _check(old: RunState, new: RunState) -> None:
    if new not in TRANSITIONS[old]:
        raise UnknownTransition(f"A run does not go from {old} to {new}.")


def is_terminal(state: str) -> bool:
    """Return whether a run in this state changes no more by itself."""
    return state in TERMINAL_STATES
