"""How a run reaches Spark, and how what is left of its work there is stopped.

`connect` shares one Spark Connect server, each run a session of its own; `submit` gives each run
an application of its own. A worker launches and follows runners of both in the same way.
"""

import errno
import logging
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from django.conf import settings

from assets_app.catalogue.loading import user_code_environment
from assets_app.execution.attempts import Attempt
from assets_app.execution.runner_user import shared_folder
from assets_app.models import RunAttempt
from slicewise import spark
from slicewise.runner.client import WarmParent, WarmParentError
from slicewise.runner.messages import is_application_id
from slicewise.runner.session import SUBMIT
from slicewise.runner.submit import attempt_conf, has_name, kill_command, status_command

log = logging.getLogger(__name__)

_SPARK_PORT = 15002
_CONNECT_SECONDS = 2.0
_KILL_SECONDS = 30.0
# What is said of an application that is not there any more.
_NO_SUCH_APPLICATION = ("ApplicationNotFoundException", "doesn't exist in RM")

# What a driver needs to know of its cluster, beside what all user code may see.
_CLUSTER_VARIABLES = (
    *("SPARK_CONF_DIR", "SPARK_LOCAL_IP", "SPARK_LOCAL_DIRS"),
    *("HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_PYTHON"),
)
_QUIET = {"spark.log.level": "WARN", "spark.ui.showConsoleProgress": "false"}


class MayGoOn(Exception):
    """What an attempt has begun on Spark could not be seen to have ended."""


class Engine(Protocol):
    """One way to reach Spark."""

    def facts(self, attempt: Attempt) -> dict[str, Any]:
        """What the runner is told; ValueError where this server cannot offer the engine."""

    def stop(self, parent: WarmParent, attempt: RunAttempt) -> None:
        """End the attempt's work on Spark, wherever its worker was. Raises MayGoOn."""

    def tidy(self, attempt: RunAttempt) -> None:
        """Remove what the attempt keeps on this host, once its processes have ended."""


def engine_of(attempt: RunAttempt) -> Engine:
    """The engine of an attempt."""
    return _Submit() if attempt.engine == SUBMIT else _Connect()


class _Connect:
    """A session on the Spark Connect server, which others share."""

    def facts(self, attempt: Attempt) -> dict[str, Any]:
        session = str(attempt.row.spark_session_id)
        return {"remote": settings.SPARK_REMOTE, "session_id": session, "tag": attempt.tag}

    def stop(self, parent: WarmParent, attempt: RunAttempt) -> None:
        # Asked before as well: an interruption takes its whole time to find that nobody is there.
        if not _is_server_gone():
            try:
                parent.interrupt(settings.SPARK_REMOTE, str(attempt.spark_session_id))
                return
            except WarmParentError as error:
                if not _is_server_gone():
                    raise MayGoOn(str(error)) from error
        log.warning(
            "no Spark server to stop a session of",
            extra={"run": attempt.run_id, "attempt": attempt.number},
        )

    def tidy(self, attempt: RunAttempt) -> None:
        """Nothing is kept here."""


class _Submit:
    """An application of its own: its driver runs on the gateway, and it ends with its driver."""

    def facts(self, attempt: Attempt) -> dict[str, Any]:
        if not settings.SPARK_MASTER:
            raise ValueError(
                f'The asset {attempt.run.asset.name} says engine="submit", and this server has no'
                " Spark master: its setting SPARK_MASTER names one."
            )
        if settings.RUNNER_USERS:
            # Hadoop and Ivy take a process's user by its name, and users of the range have none.
            raise ValueError(
                f'The asset {attempt.run.asset.name} says engine="submit", and this server gives'
                " each run a user without a name (its setting SLICEWISE_RUNNER_USERS), as whom"
                " spark-submit does not start."
            )
        asked = attempt.run.producer_version.definition.get("spark_conf") or {}
        return {
            "engine": SUBMIT,
            "master": settings.SPARK_MASTER,
            "name": attempt.tag,
            "tag": attempt.tag,
            "conf": {**submit_conf(asked), **attempt_conf(settings.SPARK_MASTER, attempt.tag)},
            "spark_home": str(spark_home()),
            "env": submit_environment(),
            "folder": str(_folder(attempt.row)),
        }

    def stop(self, parent: WarmParent, attempt: RunAttempt) -> None:
        self.tidy(attempt)
        # Said by the runner after the attempt was read.
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
        shutil.rmtree(_folder(attempt), ignore_errors=True)


def tidy_host() -> None:
    """Remove what attempts that have ended keep on this host: they were lost with it."""
    folders = {folder.name: folder for folder in _submitted().glob("*")}
    if folders:
        # Read after the folders: an attempt is on record before it has one.
        going_on = RunAttempt.objects.filter(ended_at__isnull=True, engine=SUBMIT)
        for token in going_on.values_list("token", flat=True):
            folders.pop(str(token), None)
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)


def submit_conf(asked: Mapping[str, str]) -> dict[str, str]:
    """What an application is configured with: what an asset asks for wins."""
    session = {name: str(value) for name, value in spark.SESSION_CONF.items()}
    jars = {"spark.jars": ",".join(settings.JDBC_JARS)} if settings.JDBC_JARS else {}
    return {**_QUIET, **jars, **settings.SPARK_SUBMIT_CONF, **session, **asked}


def submit_environment() -> dict[str, str]:
    """What spark-submit needs beside the environment that all user code gets."""
    names = (*_CLUSTER_VARIABLES, *settings.RUNNER_ENV)
    env = {name: os.environ[name] for name in names if os.environ.get(name)}
    if settings.JAVA_HOME:
        env["JAVA_HOME"] = settings.JAVA_HOME
    if settings.SPARK_MASTER.startswith("local"):
        env.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # nobody elsewhere has to reach the driver
    return {
        "PYSPARK_PYTHON": sys.executable,
        **env,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_HOME": str(spark_home()),
    }


def spark_home() -> Path:
    """The Spark that is submitted with: that of the setting, else the one of the pyspark wheel."""
    if settings.SPARK_HOME:
        return Path(settings.SPARK_HOME)
    found = find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise ValueError("The package pyspark is not installed; set SPARK_HOME.")
    return Path(next(iter(found.submodule_search_locations)))


def _submitted() -> Path:
    return shared_folder("submitted")


def _folder(attempt: RunAttempt) -> Path:
    return _submitted() / str(attempt.token)


def _leave(application: str, attempt: RunAttempt) -> None:
    """Say that an application goes on: the runner named one that is not its own."""
    facts = {"run": attempt.run_id, "attempt": attempt.number, "application": application}
    log.warning("application of another name not ended", extra=facts)


def _ask_cluster(command: list[str]) -> str | None:
    """Have the cluster tell of an application or end it; what it says. None where it has no such
    application, or where its command is not here. Raises MayGoOn.
    """
    env = {**user_code_environment(), **submit_environment()}
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=_KILL_SECONDS, check=False
        )
    except FileNotFoundError:
        # Not every gateway has its cluster's tools, and the end of the driver ends it anyhow.
        log.warning("no command to end an application with", extra={"command": command[0]})
        return None
    except subprocess.TimeoutExpired as error:
        raise MayGoOn(f"{command[0]} did not answer within {_KILL_SECONDS:g} s") from error
    said = done.stdout + done.stderr
    if done.returncode == 0:
        return said
    if any(words in said for words in _NO_SUCH_APPLICATION):
        return None
    raise MayGoOn(f"{command[0]} ended with status {done.returncode}: {said[-500:].strip()}")


def is_spark_server_there() -> bool:
    """Return whether a connection to the address of the Spark Connect server is accepted."""
    try:
        _knock()
    except OSError:
        return False
    return True


def _knock() -> None:
    address = urlsplit(settings.SPARK_REMOTE)
    host, port = address.hostname or "localhost", address.port or _SPARK_PORT
    socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()


def _is_server_gone() -> bool:
    """Return whether nothing listens at the server's address. A silent server may be at work."""
    try:
        _knock()
    except (ConnectionRefusedError, ConnectionResetError):
        return True
    except socket.gaierror as error:
        return error.errno == socket.EAI_NONAME  # a container's name goes with it
    except OSError as error:
        return error.errno == errno.EHOSTUNREACH
    return False
