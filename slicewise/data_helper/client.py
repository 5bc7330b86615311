"""The worker's side of the helper: starts the helper process, and sends requests."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slicewise.data_helper.calls import CALLS, Arguments, UnfitAnswerError, request_of
from slicewise.data_helper.error_json import error_from_json
from slicewise.data_helper.server import BEGUN
from slicewise.io.base import StorageLocation
from slicewise.runner.user_environment import with_held_back_names
from slicewise.runner.wire import WireError, decode, encode, send_header
from slicewise.storage.storage_errors import TryAgainError

_START_SECONDS = 120.0
_SEND_SECONDS = 30.0
# A stopped helper receives requests, and begins none.
_BEGIN_SECONDS = 30.0
# No publication or removal takes longer; a later attempt fences off a process that hangs.
_PATIENCE_SECONDS = 3600.0
_SMALL_ANSWER_BYTES = 1024 * 1024


_Forked = tuple[socket.socket, "subprocess.Popen[bytes]"]


class _NotBegunError(Exception):
    """The helper has not begun a request."""


class DataHelper:
    """A process that works on data as another user; safe to use from several threads.

    The helper starts with the first request, starts again when it has died, and ends with this
    process. ``env`` is the whole environment of the helper, once it has its user. ``user`` is the
    helper's user and group, which takes root; None for this process's own. ``umask`` is the umask
    of folders that the helper creates. A request that takes longer than ``patience`` seconds is
    given up; a helper that does not begin a request within ``begin_patience`` seconds is replaced.
    """

    def __init__(
        self,
        *,
        env: Mapping[str, str],
        user: tuple[int, int] | None = None,
        umask: int | None = None,
        patience: float = _PATIENCE_SECONDS,
        begin_patience: float = _BEGIN_SECONDS,
    ) -> None:
        self._env, self._user, self._umask = dict(env), user, umask
        self._patience, self._begin_patience = patience, begin_patience
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._owner = os.getpid()

    @property
    def pid(self) -> int | None:
        """The process id of the helper that was started last."""
        return self._process.pid if self._process else None

    def call(self, name: str, location: StorageLocation, arguments: Arguments) -> Any:
        """Call, in the helper, a method of the storage at a location; return the result.

        Raises the method's error, as far as callers distinguish errors; TryAgainError if the helper
        cannot be started, dies, or does not answer in time.
        """
        request = encode(request_of(name, location, arguments))
        channel, process = self._ask()
        with channel:
            channel.settimeout(self._patience)
            try:
                channel.sendall(request)
                line = _receive(channel, _SMALL_ANSWER_BYTES + 2 * len(request))
            except TimeoutError:
                self._end(process)
                problem = f"has not answered for {self._patience:g} s"
                raise TryAgainError(f"the data helper {problem}") from None
            except OSError as error:
                raise TryAgainError(f"the data helper ended: {error}") from error
        return _result(name, line, arguments)

    def close(self) -> None:
        """End the helper, and its work."""
        with self._lock:
            self._end_process()

    def _ask(self) -> _Forked:
        """Have the helper fork a process; return (channel, process): the channel to
        the fork, and the helper.

        Asks a new helper once more: a request that has not begun may be sent again.
        """
        try:
            return self._begin()
        except _NotBegunError:
            pass
        try:
            return self._begin()
        except _NotBegunError as error:
            raise TryAgainError(f"the data helper {error}") from error

    def _begin(self) -> _Forked:
        channel, channel_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with channel_end, self._lock:
                process, control = self._ensure_alive()
                try:
                    send_header(control, {}, [channel_end.fileno()])
                except OSError as error:
                    self._end_process()
                    raise _NotBegunError(f"accepts no request: {error}") from error
            # Without the lock: other threads may ask meanwhile.
            channel.settimeout(self._begin_patience)
            try:
                line = _receive(channel, _SMALL_ANSWER_BYTES)
            except OSError as error:
                self._end(process)
                raise _NotBegunError(f"starts no request: {error}") from error
            if line != BEGUN:
                _answer(line)  # raises the reason why no process could be forked
                raise TryAgainError("the data helper answered without a request")
        except BaseException:
            channel.close()
            raise
        return channel, process

    def _ensure_alive(self) -> "tuple[subprocess.Popen[bytes], socket.socket]":
        if self._owner != os.getpid():
            # This process is a fork of the one that started the helper and still owns the helper.
            self._process, self._control, self._owner = None, None, os.getpid()
        process, control = self._process, self._control
        if process is not None and control is not None and process.poll() is None:
            return process, control
        self._end_process()
        own_end, helper_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with helper_end:
                self._process = process = self._popen(helper_end)
            own_end.settimeout(_START_SECONDS)
            ready = own_end.recv(64)
        except OSError as error:
            ready = str(error).encode()
        if process is None or ready != b"ready\n":
            own_end.close()
            self._end_process()
            reason = ready.decode(errors="replace") or "it ended"
            raise _NotBegunError(f"did not start: {reason}")
        own_end.settimeout(_SEND_SECONDS)
        self._control = own_end
        return process, own_end

    def _popen(self, control: socket.socket) -> "subprocess.Popen[bytes]":
        number = control.fileno()
        # Without the folder of packages of a user: the helper is root as it starts.
        command = [sys.executable, "-s", "-m", "slicewise.data_helper"]
        command += ["--control-fd", str(number)]
        if self._user is not None:
            uid, gid = self._user
            command += ["--uid", str(uid), "--gid", str(gid)]
        return subprocess.Popen(
            command,
            env=with_held_back_names(self._env),
            cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[number],
            start_new_session=True,
            umask=-1 if self._umask is None else self._umask,
        )

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        """End a helper that is of no use, unless another helper has replaced it already."""
        with self._lock:
            if self._process is process:
                self._end_process()

    def _end_process(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()  # even one that is stopped
            self._process.wait()
            self._process = None


def _receive(channel: socket.socket, limit: int) -> bytes:
    """Wait for one whole line and return the line. Raises ConnectionError if none comes."""
    data = bytearray()
    while not data.endswith(b"\n"):
        chunk = channel.recv(65536)
        if not chunk:
            raise ConnectionResetError("the connection ended without an answer")
        data += chunk
        if len(data) > limit:
            raise ConnectionResetError("the answer is incomplete")
    return bytes(data)


def _result(name: str, line: bytes, arguments: Arguments) -> Any:
    try:
        return CALLS[name].read(_answer(line), arguments)
    except UnfitAnswerError as unfit:
        raise _unfit_answer(unfit) from unfit


def _answer(line: bytes) -> Any:
    """Return the result in an answer. Raises the error in an answer."""
    try:
        answer = decode(line)
        if "error" not in answer:
            return answer.get("result")
        error = error_from_json(answer["error"])
    except (WireError, ValueError) as unfit:
        raise _unfit_answer(unfit) from unfit
    raise error


def _unfit_answer(unfit: Exception) -> TryAgainError:
    return TryAgainError(f"the data helper sent no valid answer: {unfit}")
