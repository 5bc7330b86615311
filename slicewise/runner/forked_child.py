"""The first moments of a process that the warm parent has forked."""

import os
from collections.abc import Callable
from typing import NoReturn

from slicewise.runner.child import become_runner
from slicewise.runner.run_groups import GroupEntry
from slicewise.runner.wire import encode

TOO_LATE = "the request for this run is too old"


def end_unstarted(channel: int, reason: str) -> NoReturn:
    """End a forked process before any code of people runs: no fault of the code."""
    failed = {"type": "failed", "kind": "platform", "error": reason, "traceback": ""}
    try:
        os.write(channel, encode(failed | {"partition": None}))
    finally:
        os._exit(1)


def enter_group(group: GroupEntry, channel: int) -> None:
    """Put the forked process into its run's control group: no code of people runs outside."""
    try:
        group.enter()
    except OSError as error:
        end_unstarted(channel, f"the run could not be put into its control group: {error}")


def run_child(
    main: Callable[[int, int], int],
    parent: int,
    channel: int,
    log: int,
    user: tuple[int, int] | None,
) -> NoReturn:
    """Turn the forked process into the runner, and never return."""
    status = 1
    try:
        channel, log = become_runner(parent, channel, log, user)
        status = main(channel, log)
    finally:
        os._exit(status)


def try_setpgid(pid: int) -> None:
    """Make a child the leader of a process group.

    Called on both sides of the fork, so that the group exists whichever side is first.
    """
    try:
        os.setpgid(pid, pid)
    except (ProcessLookupError, PermissionError):
        return  # it has ended already
