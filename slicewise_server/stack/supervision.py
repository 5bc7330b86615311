"""supervisord, which keeps the processes of the stack alive.

supervisord is a process of its own and starts no program by itself: `launch` starts a program. A
launched program that ends is started again. When supervisord ends, in whatever way, all programs
end (`exec_bound_to_parent.py`).
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import xmlrpc.client
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from slicewise_server import exec_bound_to_parent
from slicewise_server.stack import machine
from slicewise_server.stack.errors import StackError
from slicewise_server.stack.folder import DataFolder
from slicewise_server.stack.process import Process, scrubbed, write_private

EXEC_BOUND_TO_PARENT = Path(exec_bound_to_parent.__file__)
ENDS = ("STOPPED", "EXITED", "FATAL")


class Supervisor:
    """A supervisord over some processes."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._daemon: subprocess.Popen[bytes] | None = None
        self._private: Path | None = None
        self._full_names: dict[str, str] = {}

    def start(self, groups: dict[str, Sequence[Process]]) -> None:
        """Start supervisord with the processes of `groups`; groups are stopped last to first."""
        self._end_earlier()
        # A socket's path may have some 100 characters, and data folders can lie deep.
        self._private = Path(tempfile.mkdtemp(prefix="slicewise-"))
        self._full_names = {
            process.name: f"{group}:{process.name}"
            for group, processes in groups.items()
            for process in processes
        }
        config = self._configuration_file
        write_private(config, self._configuration(groups))
        with open(self._folder.logs / "supervisord.out", "ab") as log:
            self._daemon = subprocess.Popen(
                [machine.python(), "-m", "supervisor.supervisord", "-n", "-c", str(config)],
                env=scrubbed(os.environ),
                cwd=self._folder.path,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C is for this process, which then stops supervisord in good order.
                start_new_session=True,
                preexec_fn=_end_with(os.getpid()),
            )
        self._folder.note(supervisor=self._daemon.pid, private=str(self._private))
        wait_for(self._answers, "supervisord", seconds=20, broken=self._broken)

    @property
    def pid(self) -> int:
        """The process id of supervisord."""
        if self._daemon is None:
            raise StackError("The stack is not running.")
        return self._daemon.pid

    def is_alive(self) -> bool:
        """Return whether supervisord runs."""
        return self._daemon is not None and self._daemon.poll() is None

    def launch(self, name: str) -> None:
        """Start a process, and start the process again after each end."""
        self._call("startProcess", self._full_names[name], False)

    def halt(self, name: str) -> None:
        """Stop a process for good."""
        self._call("stopProcess", self._full_names[name], True)

    def facts(self, name: str) -> dict[str, Any]:
        """Return supervisord's record of a process: `statename`, `pid`, `start` and more."""
        answer = self._call("getProcessInfo", self._full_names[name])
        return cast("dict[str, Any]", answer)

    def pid_of(self, name: str) -> int:
        """Return the process id of a process, 0 if the process does not run."""
        return int(self.facts(name)["pid"])

    def stop(self) -> None:
        """End supervisord and all programs, and wait for the end."""
        if self._daemon is None:
            return
        if self._daemon.poll() is None:
            self._daemon.terminate()
            try:
                self._daemon.wait(timeout=60)
            except subprocess.TimeoutExpired:
                self._daemon.kill()
                self._daemon.wait()
        self._daemon = None
        if self._private:
            shutil.rmtree(self._private, ignore_errors=True)

    def complaint(self, name: str) -> str | None:
        """Return why a process cannot start, with the end of the log; None if it may."""
        if not self.is_alive():
            return "supervisord has ended"
        if self.facts(name)["statename"] not in ENDS:
            return None
        return f"{name} does not stay up:\n{self.tail(name)}"

    def tail(self, name: str, lines: int = 20) -> str:
        """Return the last lines of a process's log."""
        try:
            text = (self._folder.logs / f"{name}.log").read_text(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def _answers(self) -> bool:
        with contextlib.suppress(OSError, xmlrpc.client.Error):
            return bool(self._call("getState")["statename"] == "RUNNING")
        return False

    def _broken(self) -> str | None:
        return None if self.is_alive() else self.tail("supervisord")

    def _call(self, method: str, *arguments: Any) -> Any:
        from supervisor.xmlrpc import SupervisorTransport

        if self._private is None:
            raise StackError("The stack is not running.")
        transport = SupervisorTransport(None, None, f"unix://{self._private}/socket")
        with xmlrpc.client.ServerProxy("http://localhost", transport=transport) as proxy:
            return getattr(proxy.supervisor, method)(*arguments)

    def _configuration(self, groups: dict[str, Sequence[Process]]) -> str:
        log = self._folder.logs / "supervisord.log"
        sections = [
            f"[supervisord]\nlogfile={_escaped(log)}\nlogfile_maxbytes=5MB\nlogfile_backups=1\n"
            f"pidfile={self._private}/pid\nchildlogdir={_escaped(self._folder.logs)}\n"
            f"identifier=slicewise\nloglevel=info\nsilent=true",
            f"[unix_http_server]\nfile={self._private}/socket\nchmod=0600",
            "[rpcinterface:supervisor]\nsupervisor.rpcinterface_factory="
            "supervisor.rpcinterface:make_main_rpcinterface",
        ]
        for priority, (group, processes) in enumerate(groups.items()):
            names = ",".join(process.name for process in processes)
            if names:
                sections.append(f"[group:{group}]\nprograms={names}\npriority={priority}")
            sections.extend(self._section(process) for process in processes)
        return "\n\n".join(sections) + "\n"

    def _section(self, process: Process) -> str:
        description = self._folder.processes / f"{process.name}.json"
        process.describe(description)
        command = shlex.join(
            [machine.python(), "-I", "-S", str(EXEC_BOUND_TO_PARENT), str(description)]
        )
        return "\n".join(
            [
                f"[program:{process.name}]",
                f"command={_escaped(command)}",
                "autostart=false",
                "autorestart=true",
                "startsecs=1",
                "startretries=1000",
                f"stopsignal={process.stop_signal.name[3:]}",
                f"stopwaitsecs={process.stop_seconds}",
                "killasgroup=true",
                "redirect_stderr=true",
                f"stdout_logfile={_escaped(self._folder.logs / f'{process.name}.log')}",
                "stdout_logfile_maxbytes=10MB",
                "stdout_logfile_backups=2",
            ]
        )

    def _end_earlier(self) -> None:
        """Wait for the end of an earlier supervisord whose starter was killed."""
        noted = self._folder.state()
        pid = noted.get("supervisor")
        if private := noted.get("private"):
            wait_for(lambda: not self._is_ours(pid), "the end of an earlier stack", seconds=90)
            shutil.rmtree(private, ignore_errors=True)

    def _is_ours(self, pid: int | None) -> bool:
        """Return whether a process is the supervisord of this data folder: ids are reused."""
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:  # no such process
            return False
        return str(self._configuration_file).encode() in command

    @property
    def _configuration_file(self) -> Path:
        return self._folder.processes / "supervisord.conf"


def wait_for(
    ready: Callable[[], bool],
    what: str,
    *,
    seconds: float,
    broken: Callable[[], str | None] = lambda: None,
) -> None:
    """Wait until `ready`. Raises StackError after `seconds`, or with a reason from `broken`."""
    end = time.monotonic() + seconds
    ask = time.monotonic() + 1
    while not ready():
        now = time.monotonic()
        if now > end:
            raise StackError(f"Waited {seconds:.0f} s for {what} without success.")
        if now > ask:  # `broken` costs more than `ready`
            ask = now + 1
            if (reason := broken()) is not None:
                raise StackError(reason)
        time.sleep(0.05)


def _end_with(parent: int) -> Callable[[], None]:
    """Return a function for a child before exec: the child ends when `parent` dies."""
    return lambda: exec_bound_to_parent.die_with_parent(signal.SIGTERM, parent)


def _escaped(text: object) -> str:
    """Return a text for supervisord's configuration, where % begins an expansion."""
    return str(text).replace("%", "%%")
