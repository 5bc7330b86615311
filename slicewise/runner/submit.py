"""The engine ``submit``: a forked runner that starts and watches spark-submit.

The worker and the warm parent treat the runner like any other: pings, log, limits and the end of
the process group. The runner does no work of the run. spark-submit starts a JVM, and the JVM the
driver (`slicewise.runner.driver`), all in the runner's process group; no descriptor survives that,
so that the driver fetches the runner's channel by a socket in a folder of the attempt.
"""

import hmac
import logging
import os
import re
import secrets
import select
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from slicewise.process.locales import with_utf8_names
from slicewise.process.python_start import python_path
from slicewise.process.removal import remove_folder
from slicewise.runner.channel import Channel
from slicewise.runner.descent import descends_from_this_process
from slicewise.runner.processes import die_with_parent
from slicewise.runner.wire import HEADER_LIMIT_BYTES, Message, WireError, encode, read_message

log = logging.getLogger(__name__)

FOLDER_VARIABLE, TOKEN_VARIABLE = "SLICEWISE_CHANNEL", "SLICEWISE_CHANNEL_TOKEN"
SOCKET_NAME = "channel"
DRIVER = Path(__file__).with_name("driver.py")

_LABEL = "slicewise-attempt"
_ANSWER_SECONDS = 10.0
# A JVM may keep threads of the user's libraries after its driver has ended.
_AFTER_DRIVER_SECONDS = 30.0


def submit_command(
    facts: Mapping[str, Any], py_files: Sequence[Path], script: Path = DRIVER
) -> list[str]:
    """Return the command line. ``facts`` contain ``spark_home``, ``master``, ``name`` and
    ``conf``.
    """
    command = ["/bin/bash", f"{facts['spark_home']}/bin/spark-submit"]
    command += ["--master", facts["master"], "--deploy-mode", "client", "--name", facts["name"]]
    for name, value in facts["conf"].items():
        command += ["--conf", f"{name}={value}"]
    return [*command, "--py-files", ",".join(map(str, py_files)), str(script)]


def attempt_conf(master: str, tag: str) -> dict[str, str]:
    """Return the configuration that labels an application's pods in Kubernetes with the attempt."""
    if not master.startswith("k8s://"):
        return {}
    return {f"spark.kubernetes.{role}.label.{_LABEL}": tag for role in ("driver", "executor")}


def status_command(master: str, application_id: str) -> list[str] | None:
    """Return the command that shows the name of an application; None if the command that
    ends it can select by tag.
    """
    if master.startswith("yarn"):
        return ["yarn", "application", "-status", application_id]
    return None


def has_name(status: str, tag: str) -> bool:
    """Return whether a status is of an application that was submitted under this name."""
    return tag in re.findall(r"^\s*Application-Name\s*:\s*(\S+)\s*$", status, re.MULTILINE)


def kill_command(
    master: str, application_id: str, tag: str, conf: Mapping[str, str]
) -> list[str] | None:
    """Return the command that ends an application from any host; None if the
    driver's end always does so.

    The end of the driver ends the application on YARN and Kubernetes too, after some minutes if the
    driver's host has gone. The runner reports the application's id: the tag, which only the worker
    gives, keeps a runner from naming another application.
    """
    if master.startswith("yarn"):
        return ["yarn", "application", "-kill", application_id]
    if master.startswith("k8s://"):
        server = master.removeprefix("k8s://")
        if "://" not in server:
            server = f"https://{server}"
        namespace = conf.get("spark.kubernetes.namespace", "default")
        selector = f"spark-app-selector={application_id},{_LABEL}={tag}"
        options = ["--server", server, "--namespace", namespace]
        return ["kubectl", *options, "delete", "pods", "--wait=false", "--selector", selector]
    return None


def launch(request: Message, worker: Channel) -> int:
    """Execute a run by spark-submit to the end; return the exit status. If a signal ended
    spark-submit, end this process by the same signal.

    The caller removes the run's folder when this process is killed.
    """
    folder = Path(request["spark"]["folder"])
    folder.mkdir(mode=0o700, parents=True)
    try:
        status = _submit(request, folder, worker)
    finally:
        remove_folder(folder)
    # The statuses by which the shell and the JVM report a process that was ended by a signal.
    number = -status if status < 0 else status - 128
    if number in set(signal.Signals):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return status


def _submit(request: Message, folder: Path, worker: Channel) -> int:
    token = secrets.token_hex(32)
    with _listen(folder) as listener:
        process = _start(request, folder, token)
        driver = _hand_over(listener, process, token, request, worker)
    if driver is None:
        status = process.wait()
        worker.say(_start_failure(status))
        return status or 1
    _wait_for_either(process, driver)
    try:
        return process.wait(_AFTER_DRIVER_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _start(request: Message, folder: Path, token: str) -> "subprocess.Popen[bytes]":
    facts = request["spark"]
    # A copy for the run alone: relative paths begin here, for reading and for writing.
    work, scratch = folder / "bundle", folder / "scratch"
    shutil.copytree(request["root"], work, copy_function=shutil.copyfile)
    scratch.mkdir()
    conf = {"spark.sql.warehouse.dir": f"file://{folder}/warehouse", **facts["conf"]}
    env = {
        **with_utf8_names(os.environ),
        # Files that remain when all processes are killed are in a folder that is removed.
        "SPARK_LOCAL_DIRS": str(scratch),
        "PYTHONIOENCODING": "utf-8:backslashreplace",
        **facts["env"],
        FOLDER_VARIABLE: str(folder),
        TOKEN_VARIABLE: token,
    }
    env["SPARK_SUBMIT_OPTS"] = " ".join(
        [env.get("SPARK_SUBMIT_OPTS", ""), f'"-Djava.io.tmpdir={scratch}"', "-XX:-UsePerfData"]
    )
    # Of a local master, the Python workers have the environment of the driver.
    env["PYTHONPATH"] = python_path(env.get("PYTHONPATH", ""))
    return subprocess.Popen(
        submit_command({**facts, "conf": conf}, [*map(Path, request["py_files"])]),
        env=env,
        cwd=work,
        stdin=subprocess.DEVNULL,
        preexec_fn=partial(die_with_parent, os.getpid()),
    )


def open_socket(folder: Path, act: str) -> socket.socket:
    """Open the socket of an attempt's folder, to listen (``bind``) or to connect (``connect``).

    By way of the folder's descriptor: the name of a socket has 107 bytes, a path may have more.
    """
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        getattr(opened, act)(f"/proc/self/fd/{directory}/{SOCKET_NAME}")
    except BaseException:
        opened.close()
        raise
    finally:
        os.close(directory)
    return opened


def _listen(folder: Path) -> socket.socket:
    listener = open_socket(folder, "bind")
    listener.listen()
    return listener


def _hand_over(
    listener: socket.socket,
    process: "subprocess.Popen[bytes]",
    token: str,
    request: Message,
    worker: Channel,
) -> int | None:
    """Give channel and request to the driver; return the driver's process id, None if
    the process ended before.

    The token is no secret among processes of one user: spark-submit has it in its environment. So
    the driver is a process that spark-submit has started, and knows the token.
    """
    process_end = os.pidfd_open(process.pid)
    is_refusal_logged = False
    try:
        while listener.fileno() in select.select([listener.fileno(), process_end], [], [])[0]:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(_ANSWER_SECONDS)
                driver = _peer(connection)
                if not descends_from_this_process(driver):
                    if not is_refusal_logged:  # each line fills the run's log
                        log.warning("process %d is not of this run: refused", driver)
                    is_refusal_logged = True
                    continue
                try:
                    if _has_token(connection, token):
                        worker.hand_over(connection)
                        connection.sendall(encode(request))
                        return driver
                except (OSError, WireError):
                    continue  # the process at the other end has gone
        return None
    finally:
        os.close(process_end)


def _has_token(connection: socket.socket, token: str) -> bool:
    message = read_message(connection, HEADER_LIMIT_BYTES) or {}
    sent = str(message.get("token")).encode(errors="replace")
    return hmac.compare_digest(sent, token.encode())


def _peer(connection: socket.socket) -> int:
    """Return the process at the other end: the first number of the kernel's three."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[:4], "little")


def _wait_for_either(process: "subprocess.Popen[bytes]", driver: int) -> None:
    watched = [os.pidfd_open(process.pid)]
    try:
        watched.append(os.pidfd_open(driver))
        _pass_on_stop(watched[-1])
        select.select(watched, [], [])
    except ProcessLookupError:
        return  # the driver has ended
    finally:
        # A repeated request must not cut short what the JVM does at its end.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for descriptor in watched:
            os.close(descriptor)


def _pass_on_stop(driver: int) -> None:
    """Pass the request to stop the run on to the driver (a pidfd), which may have a tear-down."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        with suppress(OSError):  # the driver has ended
            signal.pidfd_send_signal(driver, number)

    signal.signal(signal.SIGTERM, pass_on)


def _start_failure(status: int) -> Message:
    return {
        "type": "failed",
        "kind": "platform",
        "error": f"spark-submit ended with status {status} before the run began; see the log",
        "traceback": "",
        "partition": None,
    }
