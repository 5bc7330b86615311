"""The ways in which a run reaches Spark, and in which remaining work on Spark is stopped.

`connect` shares one Spark Connect server, each run a session of its own; `submit` gives each run an
application of its own. A worker starts and follows runners of both engines in the same way.
"""

import errno
import logging
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from django.conf import settings

from assets_app.catalogue.loading import user_code_environment
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.data.runner_user import runner_user, shared_folder
from assets_app.models import RunAttempt
from slicewise import spark
from slicewise.process.removal import remove_paths
from slicewise.runner.messages import is_application_id
from slicewise.runner.parent_client import WarmParent, WarmParentError
from slicewise.runner.session import SUBMIT
from slicewise.runner.submit import attempt_conf, has_name, kill_command, status_command

log = logging.getLogger(__name__)

_SPARK_PORT = 15002
_CONNECT_SECONDS = 2.0
_KILL_SECONDS = 30.0
# An application may leave gigabytes of scratch files.
_REMOVE_SECONDS = 60.0
# Answers of YARN about an application that does not exist any more.
_NO_SUCH_APPLICATION = ("ApplicationNotFoundException", "doesn't exist in RM")

# Variables that tell a driver of its cluster, beside the environment of all user code.
_CLUSTER_VARIABLES = (
    *("SPARK_CONF_DIR", "SPARK_LOCAL_IP", "SPARK_LOCAL_DIRS"),
    *("HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_PYTHON"),
)
_QUIET = {"spark.log.level": "WARN", "spark.ui.showConsoleProgress": "false"}


class WorkMayContinueError(Exception):
    """Work of an attempt on Spark may still go on: the end of the work could not be confirmed."""


class Engine(Protocol):
    """A way in which a run reaches Spark."""

    def facts(self, attempt: Attempt) -> dict[str, Any]:
        """Return the facts for the runner; raise ValueError if this server cannot offer the
        engine.
        """

    def stop(self, parent: WarmParent, attempt: RunAttempt) -> None:
        """End the attempt's work on Spark, wherever its worker was. Raises WorkMayContinueError."""

    def tidy(self, attempt: RunAttempt) -> None:
        """Remove the files of the attempt on this host, once its processes have ended."""


def engine_of(attempt: RunAttempt) -> Engine:
    """Return the engine of an attempt."""
    return _Submit() if attempt.engine == SUBMIT else _Connect()


class _Connect:
    """A session on the Spark Connect server, which other runs share."""

    def facts(self, attempt: Attempt) -> dict[str, Any]:
        session = str(attempt.row.spark_session_id)
        return {"remote": settings.SPARK_REMOTE, "session_id": session, "tag": attempt.tag}

    def stop(self, parent: WarmParent, attempt: RunAttempt) -> None:
        # Checked before as well: an interruption waits its full time for a server that does not
        # exist.
        if not _is_server_gone():
            try:
                parent.interrupt(settings.SPARK_REMOTE, str(attempt.spark_session_id))
                return
            except WarmParentError as error:
                if not _is_server_gone():
                    raise WorkMayContinueError(str(error)) from error
        log.warning(
            "no Spark server to stop a session of",
            extra={"run": attempt.run_id, "attempt": attempt.number},
        )

    def tidy(self, attempt: RunAttempt) -> None:
        """Remove no files: the engine keeps none."""


class _Submit:
    """An application of the attempt alone, which ends with its driver; the driver runs on the
    gateway.
    """

    def facts(self, attempt: Attempt) -> dict[str, Any]:
        if not settings.SPARK_MASTER:
            raise ValueError(
                f'The asset {attempt.run.asset.name} says engine="submit", and this server has no'
                " Spark master: its setting SPARK_MASTER names one."
            )
        if settings.RUNNER_USERS:
            # Hadoop and Ivy look up a process's user by name, and users of the range have no names.
            raise ValueError(
                f'The asset {attempt.run.asset.name} says engine="submit", and this server gives'
                " each run a user without a name (its setting SLICEWISE_RUNNER_USERS), as whom"
                " spark-submit does not start."
            )
        asset_conf = attempt.run.producer_version.spec.spark_conf
        return {
            "engine": SUBMIT,
            "master": settings.SPARK_MASTER,
            "name": attempt.tag,
            "tag": attempt.tag,
            "conf": {**submit_conf(asset_conf), **attempt_conf(settings.SPARK_MASTER, attempt.tag)},
            "spark_home": str(spark_home()),
            "env": submit_environment(),
            "folder": str(_folder(attempt.row)),
        }

    def stop(self, parent: WarmParent, attempt: RunAttempt) -> None:
        self.tidy(attempt)
        # The runner may have reported the application after the attempt was read.
        rows = RunAttempt.objects.filter(pk=attempt.pk)
        application = rows.values_list("application_id", flat=True).get()
        if not application:
            return
        if not is_application_id(application):
            _leave(application, attempt)
            return
        command = status_command(settings.SPARK_MASTER, application)
        if command is not None:
            status = _ask_cluster(command)
            if status is None:
                return
            if not has_name(status, attempt.tag):
                _leave(application, attempt)
                return
        command = kill_command(
            settings.SPARK_MASTER, application, attempt.tag, settings.SPARK_SUBMIT_CONF
        )
        if command is not None:
            _ask_cluster(command)

    def tidy(self, attempt: RunAttempt) -> None:
        _remove([_folder(attempt)])


def tidy_host() -> None:
    """Remove the files of ended attempts on this host: the attempts were lost with the host.

    What a run has left there keeps no worker from its start: files that stay are logged.
    """
    folders = {folder.name: folder for folder in _submitted().glob("*")}
    if folders:
        # Read after the folders: an attempt is on record before it has a folder.
        going_on = RunAttempt.objects.filter(ended_at__isnull=True, engine=SUBMIT)
        for token in going_on.values_list("token", flat=True):
            folders.pop(str(token), None)
        _remove(folders.values())


def _remove(folders: Iterable[Path]) -> None:
    """Remove folders of attempts, with the rights of the code that may have filled the folders."""
    paths = [str(folder) for folder in folders if os.path.lexists(folder)]
    kept_paths = remove_paths(paths, runner_user(), seconds=_REMOVE_SECONDS)
    if kept_paths:
        log.warning("files of attempts not removed", extra={"paths": kept_paths[:10]})


def submit_conf(asset_conf: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration of an application: settings of the asset win."""
    session = {name: str(value) for name, value in spark.SESSION_CONF.items()}
    jars = {"spark.jars": ",".join(settings.JDBC_JARS)} if settings.JDBC_JARS else {}
    return {**_QUIET, **jars, **settings.SPARK_SUBMIT_CONF, **session, **asset_conf}


def submit_environment() -> dict[str, str]:
    """Return the variables that spark-submit needs beside the environment of all user code."""
    names = (*_CLUSTER_VARIABLES, *settings.RUNNER_ENV)
    env = {name: os.environ[name] for name in names if os.environ.get(name)}
    if settings.JAVA_HOME:
        env["JAVA_HOME"] = settings.JAVA_HOME
    if settings.SPARK_MASTER.startswith("local"):
        env.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # no other host has to reach the driver
    return {
        "PYSPARK_PYTHON": sys.executable,
        **env,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_HOME": str(spark_home()),
    }


def spark_home() -> Path:
    """Return the Spark of the setting SPARK_HOME, otherwise the Spark in the pyspark wheel."""
    if settings.SPARK_HOME:
        return Path(settings.SPARK_HOME)
    module_spec = find_spec("pyspark")
    if module_spec is None or not module_spec.submodule_search_locations:
        raise ValueError("The package pyspark is not installed; set SPARK_HOME.")
    return Path(next(iter(module_spec.submodule_search_locations)))


def _submitted() -> Path:
    return shared_folder("submitted")


def _folder(attempt: RunAttempt) -> Path:
    return _submitted() / str(attempt.token)


def _leave(application: str, attempt: RunAttempt) -> None:
    """Log that an application goes on: the runner has named an application that is not its own."""
    facts = {"run": attempt.run_id, "attempt": attempt.number, "application": application}
    log.warning("application of another name not ended", extra=facts)


def _ask_cluster(command: list[str]) -> str | None:
    """Run a command about an application on the cluster; return the command's output.

    The command has the user and the environment of runs, as spark-submit had when the application
    was submitted. Returns None where the cluster has no such application, or this host no such
    command. Raises WorkMayContinueError.
    """
    env = {**user_code_environment(), **submit_environment()}
    user, group = runner_user() or (None, None)
    try:
        completed = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=_KILL_SECONDS, check=False,
            user=user, group=group, extra_groups=None if user is None else [],
        )  # fmt: skip
    except (FileNotFoundError, PermissionError) as error:
        # A folder of PATH that is closed to the user raises PermissionError without such a command.
        if shutil.which(command[0], path=env.get("PATH")) is not None:
            reason = f"{command[0]} cannot be started by the user of runs: {error}"
            raise WorkMayContinueError(reason) from error
        # Some gateways lack the tools of the cluster, and the end of the driver ends the
        # application anyhow.
        log.warning("no command to end an application with", extra={"command": command[0]})
        return None
    except subprocess.TimeoutExpired as error:
        raise WorkMayContinueError(
            f"{command[0]} did not answer within {_KILL_SECONDS:g} s"
        ) from error
    output = completed.stdout + completed.stderr
    if completed.returncode == 0:
        return output
    if any(answer in output for answer in _NO_SUCH_APPLICATION):
        return None
    raise WorkMayContinueError(
        f"{command[0]} ended with status {completed.returncode}: {output[-500:].strip()}"
    )


def accepts_spark_connections() -> bool:
    """Return whether a connection to the address of the Spark Connect server is accepted."""
    try:
        _connect_once()
    except OSError:
        return False
    return True


def _connect_once() -> None:
    address = urlsplit(settings.SPARK_REMOTE)
    host, port = address.hostname or "localhost", address.port or _SPARK_PORT
    socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()


def _is_server_gone() -> bool:
    """Return whether no process listens at the server's address. A silent server may be at work."""
    try:
        _connect_once()
    except (ConnectionRefusedError, ConnectionResetError):
        return True
    except socket.gaierror as error:
        return error.errno == socket.EAI_NONAME  # a container's name goes with the container
    except OSError as error:
        return error.errno == errno.EHOSTUNREACH
    return False
