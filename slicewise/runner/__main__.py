"""``python -m slicewise.runner --control-fd N --parent-pid P``: the warm parent of a worker."""

import argparse
import os
import signal
import socket
from functools import partial

from slicewise import spark
from slicewise.process.hidden_packages import hide_server_packages
from slicewise.process.hiding import hide_from_others
from slicewise.runner.child import main as child_main
from slicewise.runner.parent import WarmParentLoop
from slicewise.runner.processes import (
    MemoryScore,
    die_with_parent,
    keep_only_rights_over_users,
    renounce_privileges,
)


def main() -> None:
    """Load the modules that runs need, then serve until the worker closes
    the control socket or ends.
    """
    parser = argparse.ArgumentParser(prog="python -m slicewise.runner", description=__doc__)
    parser.add_argument("--control-fd", type=int, required=True)
    parser.add_argument("--parent-pid", type=int, required=True)
    parser.add_argument(
        "--becomes-others", action="store_true", help="each runner has a separate user"
    )
    options = parser.parse_args()
    die_with_parent(options.parent_pid)
    renounce_privileges()
    score = MemoryScore()
    hide_from_others()
    # The worker acts upon the signals of a terminal and of an orderly stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.set_inheritable(options.control_fd, False)
    control = socket.socket(fileno=options.control_fd)

    hide_server_packages()
    # Loaded here, once, for every process that is forked from this one; not above, with the
    # privileges of the worker and with the packages of servers in reach.
    from slicewise.runner import hooks, work

    spark.preload()
    if options.becomes_others:
        keep_only_rights_over_users()
    control.send(b"ready\n")
    performs = {"run": work.perform, "hook": hooks.perform}
    WarmParentLoop(control, partial(child_main, performs), score).serve()
    os._exit(0)


if __name__ == "__main__":
    main()
