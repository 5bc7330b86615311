"""The worker's side: starts the helper, and asks it."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slicewise.data_helper.calls import CALLS, Arguments, request_of
from slicewise.data_helper.errors import error_from_json
from slicewise.io.base import Place
from slicewise.runner.wire import WireError, decode, encode, send_header
from slicewise.storage.errors import TryAgainError

_START_SECONDS = 120.0
_SEND_SECONDS = 30.0
# Nobody publishes or removes for longer; whoever tries again later fences off whoever hangs.
_PATIENCE_SECONDS = 3600.0
_SMALL_ANSWER_BYTES = 1024 * 1024


class DataHelper:
    """A process that works on data as another user; safe to use from several threads.

    It is started when it is asked for the first time, started anew when it has died, and ends with
    this process. ``env`` is its whole environment. ``user`` is its user and group, which takes
    root; None for this process's own. ``umask`` is that of the folders that it makes. A request
    that takes longer than ``patience`` seconds is given up.
    """

    def __init__(
        self,
        *,
        env: Mapping[str, str],
        user: tuple[int, int] | None = None,
        umask: int | None = None,
        patience: float = _PATIENCE_SECONDS,
    ) -> None:
        self._env, self._user, self._umask = dict(env), user, umask
        self._patience = patience
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._owner = os.getpid()

    @property
    def pid(self) -> int | None:
        """The process id of the helper that was started last."""
        return self._process.pid if self._process else None

    def call(self, name: str, place: Place, arguments: Arguments) -> Any:
        """Have the helper call a method of the storage at a place; return its result.

        Raises what the method raises, as far as callers sort by it; TryAgainError where the helper
        cannot be started, dies, or does not answer in time.
        """
        request = encode(request_of(name, place, arguments))
        with self._ask() as channel:
            channel.settimeout(self._patience)
            try:
                channel.sendall(request)
                line = _receive(channel, _SMALL_ANSWER_BYTES + 2 * len(request))
            except TimeoutError:
                said = f"has not answered for {self._patience:g} s"
                raise TryAgainError(f"the process that works on the data {said}") from None
            except OSError as error:
                raise TryAgainError(f"the process that works on the data died: {error}") from error
        return _result(name, line, arguments)

    def close(self) -> None:
        """End the helper, and what it is doing."""
        with self._lock:
            self._end_process()

    def _ask(self) -> socket.socket:
        """Have the helper fork a process; return the channel to it."""
        channel, channel_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with channel_end, self._lock:
                for is_last in (False, True):
                    control = self._ensure_alive()
                    try:
                        send_header(control, {}, [channel_end.fileno()])
                        return channel
                    except OSError as error:
                        self._end_process()
                        if is_last:
                            raise TryAgainError(
                                f"the process that works on the data takes no request: {error}"
                            ) from error
        except BaseException:
            channel.close()
            raise
        raise AssertionError  # one of the two has returned or raised

    def _ensure_alive(self) -> socket.socket:
        if self._owner != os.getpid():
            # A fork of the process that has started it: the helper is the other one's.
            self._process, self._control, self._owner = None, None, os.getpid()
        is_alive = self._process is not None and self._process.poll() is None
        if self._control is not None and is_alive:
            return self._control
        self._end_process()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                self._process = self._popen(theirs)
            ours.settimeout(_START_SECONDS)
            ready = ours.recv(64)
        except OSError as error:
            ready = str(error).encode()
        if ready != b"ready\n":
            ours.close()
            self._end_process()
            why = ready.decode(errors="replace") or "it ended"
            raise TryAgainError(f"the process that works on the data did not start: {why}")
        ours.settimeout(_SEND_SECONDS)
        self._control = ours
        return ours

    def _popen(self, control: socket.socket) -> "subprocess.Popen[bytes]":
        number = control.fileno()
        command = [sys.executable, "-m", "slicewise.data_helper", "--control-fd", str(number)]
        if self._user is not None:
            uid, gid = self._user
            command += ["--uid", str(uid), "--gid", str(gid)]
        return subprocess.Popen(
            command,
            env=self._env,
            cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[number],
            start_new_session=True,
            umask=-1 if self._umask is None else self._umask,
        )

    def _end_process(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _receive(channel: socket.socket, limit: int) -> bytes:
    """Wait for one whole line. Raises ConnectionError where none comes."""
    data = bytearray()
    while not data.endswith(b"\n"):
        chunk = channel.recv(65536)
        if not chunk:
            raise ConnectionResetError("it ended without an answer")
        data += chunk
        if len(data) > limit:
            raise ConnectionResetError("its answer has no end")
    return bytes(data)


def _result(name: str, line: bytes, arguments: Arguments) -> Any:
    try:
        answer = decode(line)
        if "error" not in answer:
            return CALLS[name].read(answer.get("result"), arguments)
        error = error_from_json(answer["error"])
    except (WireError, ValueError) as unfit:
        said = f"said what is no answer: {unfit}"
        raise TryAgainError(f"the process that works on the data {said}") from unfit
    raise error
