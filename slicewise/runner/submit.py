"""The engine ``submit``: a forked runner that starts spark-submit and keeps watch over it.

The runner is one like any other to its worker and to the warm parent: pings, log, limits and the
end of its process group are theirs. It makes nothing by itself. spark-submit starts a JVM, and that
the driver (`slicewise.runner.driver`), all in the runner's process group; no descriptor survives
that, so that the driver fetches the runner's channel by a socket in a folder of the attempt.
"""

import hmac
import os
import re
import secrets
import select
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from slicewise.locales import with_utf8_names
from slicewise.runner.channel import Channel
from slicewise.runner.processes import die_with_parent
from slicewise.runner.wire import HEADER_LIMIT_BYTES, Message, WireError, encode, read_message

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
    """The command line. ``facts`` hold ``spark_home``, ``master``, ``name`` and ``conf``."""
    command = ["/bin/bash", f"{facts['spark_home']}/bin/spark-submit"]
    command += ["--master", facts["master"], "--deploy-mode", "client", "--name", facts["name"]]
    for name, value in facts["conf"].items():
        command += ["--conf", f"{name}={value}"]
    return [*command, "--py-files", ",".join(map(str, py_files)), str(script)]


def attempt_conf(master: str, tag: str) -> dict[str, str]:
    """The configuration by which Kubernetes knows whose the pods of an application are."""
    if not master.startswith("k8s://"):
        return {}
    return {f"spark.kubernetes.{role}.label.{_LABEL}": tag for role in ("driver", "executor")}


def status_command(master: str, application_id: str) -> list[str] | None:
    """What tells the name of an application; None where what ends it can ask for its tag itself."""
    if master.startswith("yarn"):
        return ["yarn", "application", "-status", application_id]
    return None


def has_name(status: str, tag: str) -> bool:
    """Whether this is the answer about an application that was submitted under this name."""
    return tag in re.findall(r"^\s*Application-Name\s*:\s*(\S+)\s*$", status, re.MULTILINE)


def kill_command(
    master: str, application_id: str, tag: str, conf: Mapping[str, str]
) -> list[str] | None:
    """What ends an application from anywhere; None where its driver's end always ends it.

    The end of the driver ends the application on YARN and Kubernetes too, after some minutes where
    the driver's host has gone. A runner says which application is its own: the tag, which only its
    worker gives, keeps it from naming another one.
    """
    if master.startswith("yarn"):
        return ["yarn", "application", "-kill", application_id]
    if master.startswith("k8s://"):
        server = master.removeprefix("k8s://")
        if "://" not in server:
            server = f"https://{server}"
        namespace = conf.get("spark.kubernetes.namespace", "default")
        selector = f"spark-app-selector={application_id},{_LABEL}={tag}"
        where = ["--server", server, "--namespace", namespace]
        return ["kubectl", *where, "delete", "pods", "--wait=false", "--selector", selector]
    return None


def launch(request: Message, worker: Channel) -> int:
    """Makes a run by spark-submit, to its end; the exit status. Ends by the signal that ended it.

    Its folder is the caller's to remove when this process is killed.
    """
    folder = Path(request["spark"]["folder"])
    folder.mkdir(mode=0o700, parents=True)
    try:
        status = _submit(request, folder, worker)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    # As the shell and the JVM tell of a process that was ended by a signal.
    number = -status if status < 0 else status - 128
    if number in set(signal.Signals):
        os.kill(os.getpid(), number)
    return status


def _submit(request: Message, folder: Path, worker: Channel) -> int:
    token = secrets.token_hex(32)
    with _listen(folder) as listener:
        process = _start(request, folder, token)
        driver = _hand_over(listener, process, token, request, worker)
    if driver is None:
        status = process.wait()
        worker.say(_not_begun(status))
        return status or 1
    _wait_for_either(process, driver)
    try:
        return process.wait(_AFTER_DRIVER_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _start(request: Message, folder: Path, token: str) -> "subprocess.Popen[bytes]":
    facts = request["spark"]
    # A copy of its own: relative paths begin here, for reading and for writing.
    work, scratch = folder / "bundle", folder / "scratch"
    shutil.copytree(request["root"], work, copy_function=shutil.copyfile)
    scratch.mkdir()
    conf = {"spark.sql.warehouse.dir": f"file://{folder}/warehouse", **facts["conf"]}
    env = {
        **with_utf8_names(os.environ),
        # What is left behind when all is killed, lies where somebody clears it away.
        "SPARK_LOCAL_DIRS": str(scratch),
        "SPARK_SUBMIT_OPTS": f'"-Djava.io.tmpdir={scratch}" -XX:-UsePerfData',
        "PYTHONIOENCODING": "utf-8:backslashreplace",
        **facts["env"],
        FOLDER_VARIABLE: str(folder),
        TOKEN_VARIABLE: token,
    }
    return subprocess.Popen(
        submit_command({**facts, "conf": conf}, [*map(Path, request["py_files"])]),
        env=env,
        cwd=work,
        stdin=subprocess.DEVNULL,
        preexec_fn=partial(die_with_parent, os.getpid()),
    )


def open_socket(folder: Path, act: str) -> socket.socket:
    """Listens (``bind``) or connects (``connect``) at the socket of an attempt's folder.

    By way of the folder's descriptor: the name of a socket has 107 bytes, a path may have more.
    """
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        getattr(found, act)(f"/proc/self/fd/{directory}/{SOCKET_NAME}")
    except BaseException:
        found.close()
        raise
    finally:
        os.close(directory)
    return found


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
    """Gives the driver channel and request; its process id, None if the process ended before."""
    ended = os.pidfd_open(process.pid)
    try:
        while listener.fileno() in select.select([listener.fileno(), ended], [], [])[0]:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(_ANSWER_SECONDS)
                try:
                    if _knows(connection, token):
                        worker.hand_over(connection)
                        connection.sendall(encode(request))
                        return _peer(connection)
                except (OSError, WireError):
                    continue  # whoever it was has gone
        return None
    finally:
        os.close(ended)


def _knows(connection: socket.socket, token: str) -> bool:
    said = read_message(connection, HEADER_LIMIT_BYTES) or {}
    return hmac.compare_digest(str(said.get("token")).encode(), token.encode())


def _peer(connection: socket.socket) -> int:
    """The process at the other end: the first number of the kernel's three."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[:4], "little")


def _wait_for_either(process: "subprocess.Popen[bytes]", driver: int) -> None:
    watched = [os.pidfd_open(process.pid)]
    try:
        watched.append(os.pidfd_open(driver))
        select.select(watched, [], [])
    except ProcessLookupError:
        return  # the driver has ended
    finally:
        for descriptor in watched:
            os.close(descriptor)


def _not_begun(status: int) -> Message:
    return {
        "type": "failed",
        "kind": "platform",
        "error": f"spark-submit ended with status {status} before the run began; see the log",
        "traceback": "",
        "partition": None,
    }
