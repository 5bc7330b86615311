"""``python -m slicewise.data_helper --control-fd N [--uid U --gid G]``: the helper of a worker."""

import argparse
import os
import signal
import socket

from slicewise.data_helper.server import preload, serve
from slicewise.process.hiding import hide_from_others
from slicewise.runner.processes import become, renounce_privileges
from slicewise.runner.user_environment import take_environment


def main() -> None:
    """Serve requests until the process that started this one closes the control socket."""
    parser = argparse.ArgumentParser(prog="python -m slicewise.data_helper", description=__doc__)
    parser.add_argument("--control-fd", type=int, required=True)
    parser.add_argument("--uid", type=int)
    parser.add_argument("--gid", type=int)
    options = parser.parse_args()
    os.set_inheritable(options.control_fd, False)
    control = socket.socket(fileno=options.control_fd)
    # Signals of a terminal and of an orderly stop are for the worker, which finishes its work.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    hide_from_others()
    renounce_privileges()
    preload()
    if options.uid is not None:
        # Here, and not in the process that starts this one: this process would be open to others of
        # the user between the start of its program and the program's first line.
        become((options.uid, options.gid))
        hide_from_others()  # the kernel may have let others in again as the user changed
    take_environment()
    os.chdir("/")
    control.send(b"ready\n")
    serve(control)
    os._exit(0)


if __name__ == "__main__":
    main()
