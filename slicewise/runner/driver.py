"""The driver of a run that spark-submit starts: the work of a forked runner, in an application."""

import logging
import os
import sys
from pathlib import Path

from slicewise.process.hidden_packages import hide_server_packages
from slicewise.process.hiding import hide_from_others
from slicewise.runner.channel import Channel, receive_channel
from slicewise.runner.child import answer_run
from slicewise.runner.processes import die_with_parent
from slicewise.runner.submit import FOLDER_VARIABLE, TOKEN_VARIABLE, open_socket
from slicewise.runner.wire import REQUEST_LIMIT_BYTES, Message, encode, read_message


def main() -> int:
    """Fetch channel and request from the runner, and execute the run; return the exit status."""
    hide_from_others()
    die_with_parent(os.getppid())
    channel, request = _fetch()
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        force=True,
    )
    logging.getLogger("py4j").setLevel(logging.WARNING)  # it logs each call of the JVM
    hide_server_packages()
    # Not above: modules of servers are hidden before a module that runs user code is loaded.
    from slicewise.runner.work import perform

    return answer_run(perform, request, channel)


def _fetch() -> tuple[Channel, Message]:
    folder, token = os.environ.pop(FOLDER_VARIABLE), os.environ.pop(TOKEN_VARIABLE)
    with open_socket(Path(folder), "connect") as connection:
        connection.sendall(encode({"token": token}))
        channel = receive_channel(connection)
        request = read_message(connection, REQUEST_LIMIT_BYTES)
    if request is None:
        raise ConnectionError("the runner of this run has ended")
    return channel, request


if __name__ == "__main__":
    # Python puts a script's folder first: its modules must not be found by their short names.
    del sys.path[0]
    status = main()
    os._exit(status)  # as a forked runner ends, even if threads of the user go on
