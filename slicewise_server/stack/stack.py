"""The whole of Slicewise on one machine: the servers, and the commands that production runs."""

from __future__ import annotations

import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from slicewise_server.stack import machine, ports
from slicewise_server.stack.code_account import CodeAccount
from slicewise_server.stack.commands import COMMANDS, PREPARE
from slicewise_server.stack.errors import StackError
from slicewise_server.stack.folder import PROJECT
from slicewise_server.stack.java import java_home
from slicewise_server.stack.process import Process
from slicewise_server.stack.services import START_SECONDS, Services
from slicewise_server.stack.supervision import wait_for

GROUP = "slicewise"
ADMIN = "admin"
CODE_SETTINGS = ("SLICEWISE_RUNNER_USER", "SLICEWISE_RUNNER_USERS")
EMBEDDED = {"PYTHONUNBUFFERED": "1", "SLICEWISE_BOUND_TO_PARENT": "1"}


class Stack:
    """One running Slicewise on one data folder.

    `bundles` maps names to folders of definition files; `env` stands for this process's environment
    (settings, and servers to use instead of embedded ones); `slots` is the number of slots of
    each worker; `port` is the port of the pages, by default any free port. If `port` is taken, the
    stack has another port, or with `port_is_fixed` refuses to start. `code` is the user of code, if
    known.
    """

    def __init__(
        self,
        data: Path,
        bundles: Mapping[str, Path] | None = None,
        env: Mapping[str, str] | None = None,
        slots: int = 3,
        port: int | None = None,
        port_is_fixed: bool = False,
        code: CodeAccount | None = None,
    ) -> None:
        self.services = Services(data, env)
        self.data = self.services.folder.path
        self._bundles = {name: folder.resolve() for name, folder in (bundles or {}).items()}
        self.code = code
        self._slots = slots
        self._preferred_port = port
        self._port_is_fixed = port_is_fixed
        self._port = port
        self._claim: ports.Claim | None = None

    @property
    def web_url(self) -> str:
        """The address of the pages."""
        return f"http://{ports.HOST}:{self._port}"

    @property
    def taken_port(self) -> int | None:
        """The preferred port of the pages, if another program has the port; else None."""
        return None if self._port == self._preferred_port else self._preferred_port

    @property
    def admin_password(self) -> str:
        """The password of the account `admin`, which the first start made."""
        return self.services.folder.credentials().admin_password

    def start(self, wait: bool = True) -> None:
        """Start everything; with `wait`, return when pages, workers and Spark can be used."""
        try:
            self._start()
            if wait:
                self.wait()
        except BaseException:
            self.stop()
            raise

    def claim_port(self) -> None:
        """Claim the port of the pages. Raises StackError if a fixed port is taken."""
        preferred_port = self._preferred_port
        if self._port_is_fixed and preferred_port is not None:
            self._claim = ports.claim_exactly(preferred_port)
        else:
            self._claim = ports.claim(preferred_port)
        self._port = self._claim.port

    def wait(self) -> None:
        """Wait until pages, workers and Spark can be used."""
        wait_for(self._web_answers, "the pages", seconds=START_SECONDS, broken=self._complaint)
        for name in COMMANDS:
            wait_for(
                lambda name=name: self.services.supervisor.facts(name)["statename"] == "RUNNING",  # type: ignore[misc]
                name,
                seconds=START_SECONDS,
                broken=self._complaint,
            )
        self.services.wait()

    def stop(self) -> None:
        """End all processes of the stack and release the data folder."""
        self.services.stop()
        if self._claim is not None:
            self._claim.give_up()

    def environment(self) -> dict[str, str]:
        """Return the settings of the stack's processes, sufficient for any `manage.py` command."""
        env = self.services.env
        settings = {
            **self.services.environment(),
            "SLICEWISE_SLOTS": str(self._slots),
            # All on one machine: no failover is waited for, and people wait for lost workers.
            "LEASE_SECONDS": env.get("LEASE_SECONDS") or "15",
            "SLICEWISE_BUNDLES": ",".join(f"{n}={p}" for n, p in self._bundles.items()),
            "SLICEWISE_URL": env.get("SLICEWISE_URL") or self.web_url,
            "GRANIAN_HOST": ports.HOST,
            "GRANIAN_PORT": str(self._port),
        }
        given = ("SLICEWISE_RUNNER_ENV", *CODE_SETTINGS, "GRANIAN_WORKERS")
        settings |= {name: env[name] for name in given if env.get(name)}
        if env.get("SPARK_MASTER"):
            settings["SPARK_MASTER"] = env["SPARK_MASTER"]
            settings["JAVA_HOME"] = str(java_home(self.services.folder.path / "spark", env))
        return {**settings, **self.services.passed()}

    def pid_of(self, name: str) -> int:
        """Return the process id of "web", "postgresql" or the like; 0 without a process."""
        return self.services.pid_of(name)

    def manage(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a `manage.py` command with the settings of the stack."""
        return subprocess.run(
            [machine.python(), str(PROJECT / "manage.py"), *arguments],
            env={**self.services.env, **self.environment()},
            capture_output=True,
            text=True,
            check=check,
        )

    def _start(self) -> None:
        self.services.reserve()
        self.claim_port()
        env = {**self.services.env, **self.environment(), **EMBEDDED}
        processes = [
            Process(name=name, argv=runnable(command), env=env, cwd=PROJECT)
            for name, command in COMMANDS.items()
        ]
        self.services.start(wait=False, others={GROUP: processes})
        self.services.folder.note(environment=self.environment(), web_url=self.web_url)
        self.services.wait(["postgresql", "redis"])
        self._prepare(env)
        for name in COMMANDS:
            self.services.supervisor.launch(name)

    def _prepare(self, env: dict[str, str]) -> None:
        done = subprocess.run(
            runnable(PREPARE),
            env={
                **env,
                "DJANGO_SUPERUSER_USERNAME": ADMIN,
                "DJANGO_SUPERUSER_PASSWORD": self.admin_password,
            },
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )
        (self.services.folder.logs / "prepare.log").write_text(done.stdout + done.stderr)
        if done.returncode != 0:
            raise StackError(f"The database could not be prepared:\n{done.stderr[-3000:]}")

    def _web_answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.web_url}/api/v1/health/", timeout=5):
                return True
        except urllib.error.HTTPError as error:
            return error.code < 500
        except OSError:
            return False

    def _complaint(self) -> str | None:
        for name in COMMANDS:
            if (reason := self.services.supervisor.complaint(name)) is not None:
                return reason
        return None


def runnable(command: list[str]) -> list[str]:
    """Return the command with the path of this Python in place of the first word `python`."""
    word, *rest = command
    return [machine.python() if word == "python" else word, *rest]
