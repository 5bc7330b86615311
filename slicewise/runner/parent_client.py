"""The worker's side: starts the warm parent, requests runners, and follows each to its end."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from slicewise.loading.archives import BundleError
from slicewise.runner.bundle_cache import BundleCache
from slicewise.runner.follow import RunnerProcess
from slicewise.runner.run_groups import RunGroup, RunGroups
from slicewise.runner.run_limits import RunLimits
from slicewise.runner.run_resources import RunResources
from slicewise.runner.session import is_submitted
from slicewise.runner.slot_users import NoFreeUserError, SlotUsers
from slicewise.runner.starter_thread import StarterThread
from slicewise.runner.user_environment import with_held_back_names
from slicewise.runner.wire import REQUEST_LIMIT_BYTES, Message, encode, send_header

__all__ = ["RequestTooLargeError", "RunnerProcess", "WarmParent", "WarmParentError"]

START_TIMEOUT_SECONDS = 120.0
INTERRUPT_TIMEOUT_SECONDS = 10.0
_SEND_TIMEOUT_SECONDS = 30.0


class WarmParentError(Exception):
    """The warm parent could not be started, or took no request. A failure of the platform."""


class RequestTooLargeError(Exception):
    """The partitions of a run do not fit into a request. A failure of the run."""

    def __init__(self, size: int) -> None:
        super().__init__(
            f"The keys of the partitions that the run writes and reads take {size:,} bytes; the "
            f"limit is {REQUEST_LIMIT_BYTES:,}. Write fewer partitions in one run."
        )


class WarmParent:
    """A warm parent process that forks runners on request; safe to use from several threads.

    ``env`` is the whole environment of all user code, but for OPENBLAS_NUM_THREADS, and of the
    parent too if runners have its user. ``cache`` is the folder in which bundles are unpacked for
    runners. ``user`` is another user and group for runners, which must be able to read the folder.
    That takes root: the parent stays root, keeps the rights to become that user and to end the
    user's processes, and runs no user code. ``slot_users`` are users that serve one run at a time,
    and ``user`` then is the user of operations without user code. ``groups`` are started groups of
    which each run gets one; `close` closes them too.
    """

    def __init__(
        self,
        *,
        env: Mapping[str, str],
        cache: Path,
        user: tuple[int, int] | None = None,
        slot_users: SlotUsers | None = None,
        groups: RunGroups | None = None,
    ) -> None:
        self._env = {**env, "OPENBLAS_NUM_THREADS": "1"}
        self._bundles = BundleCache(Path(cache))
        self._user = user
        self._slot_users = slot_users
        self._groups = groups
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._starter = StarterThread()

    @property
    def pid(self) -> int | None:
        """The process id of the parent that was started last."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the parent and wait until pyspark is loaded. Raises WarmParentError."""
        with self._lock:
            self._ensure_alive()

    def is_alive(self) -> bool:
        """Return whether the parent exists and would take a request."""
        return self._process is not None and self._process.poll() is None

    def close(self) -> None:
        """End the parent and every runner."""
        with self._lock:
            self._end_process()
            self._starter.close()
        if self._groups is not None:
            self._groups.close()

    def launch(self, request: Message) -> RunnerProcess:
        """Fork a runner for one run; start a dead parent again.

        No runner is forked once the monotonic clock of this host is past the request's
        ``not_after``. Raises WarmParentError, and RequestTooLargeError before a runner is forked.
        """
        return self._fork("run", request)

    def call_hook(self, request: Message) -> RunnerProcess:
        """Fork a runner that calls a function after its run. Raises the errors of `launch`."""
        return self._fork("hook", request)

    def interrupt(self, remote: str, session_id: str) -> None:
        """Stop all Spark work of a session, even if another worker has opened the session.

        Raises WarmParentError if that is not done within 10 seconds.
        """
        body = {"remote": remote, "session_id": session_id}
        helper = self._ask("interrupt", body, INTERRUPT_TIMEOUT_SECONDS)
        failure = "the process did not end"
        for message in helper.messages(INTERRUPT_TIMEOUT_SECONDS):
            if message["type"] == "idle":
                helper.kill()
            elif message["type"] == "failed":
                failure = str(message["error"])
            elif message["type"] == "exited" and message["status"] != 0:
                raise WarmParentError(f"session {session_id} was not interrupted: {failure}")

    def _fork(self, operation: str, request: Message) -> RunnerProcess:
        full, watchdog = self._full(request), float(request.get("watchdog") or 0) or None
        resources = self._resources(full)
        try:
            if resources.claim is not None:
                home = resources.claim.home
                full["home"] = str(home)
                if is_submitted(request):
                    full["spark"] = {**request["spark"], "folder": str(home / "submitted")}
            return self._ask(operation, full, watchdog, resources)
        except BaseException:
            resources.let_go()
            raise

    def _resources(self, request: Message) -> RunResources:
        """Return a user and a control group for the run, and write into the request's limits that
        the group has them.
        """
        group = self._group(request)
        if self._slot_users is None:
            return RunResources(group=group)
        try:
            return RunResources(self._slot_users.claim(self._end_all), group)
        except BaseException as error:
            RunResources(group=group).let_go()
            if isinstance(error, NoFreeUserError | OSError | subprocess.SubprocessError):
                raise WarmParentError(f"no user for the run: {error}") from error
            raise

    def _group(self, request: Message) -> RunGroup | None:
        if self._groups is None:
            return None
        limits = RunLimits.of(request.get("limits"))
        try:
            group = self._groups.create(f"{request['run_id']}-{request['attempt']}", limits)
        except OSError as error:
            raise WarmParentError(f"no control group for the run: {error}") from error
        request["limits"] = replace(limits, in_group=self._groups.limits_runs).to_json()
        return group

    def _end_all(self, user: tuple[int, int]) -> bool:
        """End all processes of a user that no run has; return whether none is left."""
        answer = self._send_for("end", {}, {"user": user}, RunResources())
        is_gone = False
        for message in answer.messages(_SEND_TIMEOUT_SECONDS):
            if message["type"] == "idle":
                answer.kill()
                raise WarmParentError(
                    f"the warm parent does not say whether user {user[0]} is free"
                )
            is_gone = bool(message.get("is_user_gone"))
        return is_gone

    def _full(self, request: Message) -> Message:
        """Return the request with the paths that this worker has prepared for the runner."""
        bundle = request["bundle"]
        try:
            laid_out: Message = {"root": str(self._bundles.root(bundle))}
            if is_submitted(request):
                laid_out["py_files"] = [*map(str, self._bundles.shipped(bundle))]
        except (OSError, BundleError) as error:
            raise WarmParentError(f"the bundle cannot be unpacked: {error}") from error
        return {**request, **laid_out}

    def _ask(
        self,
        operation: str,
        body: Message,
        watchdog: float | None,
        resources: RunResources = RunResources(),  # noqa: B008 - immutable
    ) -> RunnerProcess:
        claim = resources.claim
        header = {
            "watchdog": watchdog,
            "not_after": body.get("not_after"),
            "user": self._user if claim is None else claim.user,
            "is_own_user": claim is not None,
            "limits": body.get("limits"),
        }
        return self._send_for(operation, body, header, resources)

    def _send_for(
        self, operation: str, body: Message, header: Message, resources: RunResources
    ) -> RunnerProcess:
        request = encode(body)
        if len(request) > REQUEST_LIMIT_BYTES:
            raise RequestTooLargeError(len(request))
        channel, channel_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        status, status_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        log, log_end = os.pipe2(os.O_CLOEXEC)
        try:
            with ExitStack() as files:
                # The status comes first: by that socket the parent refuses a run.
                ends = [status_end.fileno(), channel_end.fileno(), log_end]
                entry = _opened_entry(resources, files)
                self._send({"op": operation, **header}, [*ends, *entry])
        except BaseException:
            channel.close()
            status.close()
            os.close(log)
            raise
        finally:
            channel_end.close()
            status_end.close()
            os.close(log_end)
        runner = RunnerProcess(
            channel=channel,
            log=log,
            status=status,
            log_limit=int(body.get("log_limit") or 0),
            output_limit=int(body.get("output_limit") or 0),
            resources=resources,
        )
        channel.settimeout(_SEND_TIMEOUT_SECONDS)
        try:
            channel.sendall(request)
            channel.setblocking(False)
        except OSError:
            runner.kill()  # `messages` reports the end, which says more than this error
        return runner

    def _send(self, header: Message, descriptors: list[int]) -> None:
        with self._lock:
            for is_last in (False, True):
                control = self._ensure_alive()
                try:
                    send_header(control, header, descriptors)
                    return
                except OSError as error:
                    self._end_process()
                    if is_last:
                        raise WarmParentError(
                            f"the warm parent takes no request: {error}"
                        ) from error

    def _ensure_alive(self) -> socket.socket:
        if self._control is not None and self.is_alive():
            return self._control
        self._end_process()
        own_end, parent_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._process = self._starter.run(lambda: self._popen(parent_end))
        finally:
            parent_end.close()
        self._control = own_end
        own_end.settimeout(START_TIMEOUT_SECONDS)
        try:
            ready = own_end.recv(64)
        except OSError as error:
            ready = str(error).encode()
        if ready != b"ready\n":
            self._end_process()
            raise WarmParentError(
                f"the warm parent did not start: {ready.decode() or 'the process ended'}"
            )
        own_end.settimeout(_SEND_TIMEOUT_SECONDS)
        return own_end

    def _popen(self, control: socket.socket) -> "subprocess.Popen[bytes]":
        number, env = control.fileno(), self._env
        flags: list[str] = []
        options: list[str] = []
        if self._user is not None:
            # The parent is root: variables of user code come into force once a runner has its user.
            env = with_held_back_names(env)
            flags, options = ["-s"], ["--becomes-others"]
        command = [sys.executable, *flags, "-m", "slicewise.runner", *options]
        return subprocess.Popen(
            [*command, "--control-fd", str(number), "--parent-pid", str(os.getpid())],
            env=env,
            cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL,
            pass_fds=[number],
        )

    def _end_process(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def _opened_entry(resources: RunResources, files: ExitStack) -> list[int]:
    """Return the files by which the run enters its control group, open as long as ``files`` is."""
    if resources.group is None:
        return []
    try:
        return files.enter_context(resources.group.entry())
    except OSError as error:
        raise WarmParentError(f"no control group for the run: {error}") from error
