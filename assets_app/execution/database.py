"""Use of the database by threads that live for hours: for moments, and again after failures.

A connection that a thread keeps while the thread waits is dead by the time of its next use: the
server was restarted or replaced, or a device in between dropped the idle connection.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, TypeVar

from django.core.exceptions import ImproperlyConfigured
from django.db import (
    DatabaseError,
    InterfaceError,
    InternalError,
    OperationalError,
    connection,
    connections,
)
from django.db.utils import load_backend

log = logging.getLogger(__name__)

Result = TypeVar("Result")

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.2, 5.0
# An error that does not concern the server as a whole, such as a lack of memory, may recur for
# ever.
_TRIES_WHILE_IT_ANSWERS = 8
# Connection lost, server shutting down or starting, too many connections, a standby.
_AWAY_STATES = ("08", "57", "53300", "25006")
# The server lacks room or memory, or a statement exceeds a limit of the server, or takes too long.
_TOO_MUCH_STATES = ("53", "54", "57014")

_LOCK_TIMEOUT_STATE = "55P03"

# A server that is gone without an answer is noticed well before a lease runs out.
_NOTICED_SOON = {"connect_timeout": 5, "tcp_user_timeout": 10_000}
# Connections beside those of the runs: for the end of a run while the next run begins, for hooks,
# and for the main thread.
_SPARE_CONNECTIONS = 4


def check_pool(slots: int) -> None:
    """Raise ImproperlyConfigured where threads would wait for each other's connections."""
    size = connections.settings["default"]["OPTIONS"].get("pool", {}).get("max_size")
    if size is not None and size < slots + _SPARE_CONNECTIONS:
        raise ImproperlyConfigured(
            f"DATABASE_POOL_SIZE is {size}, and a worker with {slots} slots needs at least"
            f" {slots + _SPARE_CONNECTIONS}: set it to that or more, to 0 for no pool, or leave it"
            " out where SLICEWISE_SLOTS says how many slots there are."
        )


def is_passing(error: Exception) -> bool:
    """Return whether an error is the database's and the same statement may succeed later."""
    return isinstance(error, OperationalError | InterfaceError) or is_away(error)


def is_too_much(error: Exception) -> bool:
    """Return whether the server lacked room, memory or time: a smaller request may be answered."""
    sqlstate = getattr(error.__cause__, "sqlstate", None) or ""
    return isinstance(error, OperationalError) and sqlstate.startswith(_TOO_MUCH_STATES)


def is_away(error: Exception) -> bool:
    """Return whether the error says that no server takes writes at present."""
    if not isinstance(error, OperationalError | InterfaceError | InternalError):
        return False
    state = getattr(error.__cause__, "sqlstate", None)
    if state is None:
        return not isinstance(error, InternalError)
    return str(state).startswith(_AWAY_STATES)


def is_lock_timeout(error: Exception) -> bool:
    """Return whether a statement has waited for a row as long as `limit_lock_waits` allows."""
    return getattr(error.__cause__, "sqlstate", None) == _LOCK_TIMEOUT_STATE


def limit_lock_waits(longest: str) -> None:
    """Limit how long each statement of the present transaction waits for a row.

    ``longest`` is an interval of PostgreSQL. A statement that waits longer raises OperationalError.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [longest])


def lift_limit_of_lock_waits() -> None:
    """Let later statements of the present transaction wait for a row as long as usual."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout TO DEFAULT")


def release_connection() -> None:
    """Release this thread's connection, which is checked before its next use.

    A connection in a transaction stays.
    """
    if connection.connection is not None and not connection.in_atomic_block:
        try:
            connection.close()
        except (DatabaseError, InterfaceError) as error:
            log.info("connection not given back in good order", extra={"error": str(error)})


@contextmanager
def borrowed_connection() -> Iterator[None]:
    """Release the connection after the block, since the thread then waits for something else."""
    try:
        yield
    finally:
        release_connection()


def persist(action: Callable[[], Result], *, goes_on: Callable[[], bool]) -> Result:
    """Return the result of an action, which is tried again while the database is away.

    The action must be repeatable: a first try may have been committed although the answer was lost.
    Raises the action's last error once ``goes_on`` returns false, or if the error does not mean
    that the database is away.
    """
    pause, tries = _FIRST_PAUSE_SECONDS, 0
    while True:
        try:
            with borrowed_connection():
                return action()
        except (DatabaseError, InterfaceError) as error:
            if connection.in_atomic_block or not is_passing(error) or not goes_on():
                raise
            tries += not is_away(error)
            if tries > _TRIES_WHILE_IT_ANSWERS:
                raise
            log.warning("database away", extra={"error": str(error), "again_in": pause})
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def use_own_connection() -> None:
    """Give this thread a connection of its own, which no other thread can delay."""
    facts: dict[str, Any] = deepcopy(connections.settings["default"])
    facts["OPTIONS"].pop("pool", None)
    facts["OPTIONS"] |= _NOTICED_SOON
    facts["CONN_MAX_AGE"] = None
    connections["default"] = load_backend(facts["ENGINE"]).DatabaseWrapper(facts, "default")
