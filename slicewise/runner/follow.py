"""The messages, log and end of one runner, merged into one stream for the worker."""

import os
import select
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress

from slicewise.runner.log_text import LogText
from slicewise.runner.messages import QUESTIONS, refuse_malformed
from slicewise.runner.run_resources import RunResources
from slicewise.runner.wire import LineBuffer, Message, WireError, decode, encode

DEFAULT_LOG_LIMIT_BYTES = 10 * 1024 * 1024
DEFAULT_OUTPUT_LIMIT_BYTES = 32 * 1024 * 1024
_CHUNK_BYTES = 65536
# A pipe holds a chunk; the second look finds the text that had no room meanwhile.
_CHUNKS_IN_PIPE = 2
_KEPT_BY_WORKERS = ("staged", "unmade", "discovered")
_GONE_PATIENCE_SECONDS = 10.0


class _OutputLimitError(Exception):
    """A runner has reported more output than a worker keeps."""


class RunnerProcess:
    """A forked runner. `messages` ends with exactly one ``exited``, even against user code."""

    def __init__(
        self,
        *,
        channel: socket.socket,
        log: int,
        status: socket.socket,
        log_limit: int = 0,
        output_limit: int = 0,
        resources: RunResources = RunResources(),  # noqa: B008 - immutable
    ) -> None:
        self.pid: int | None = None
        """Set by the message ``started``."""
        self._resources, self._group = resources, resources.group
        self._channel = channel
        self._log = log
        self._status = status
        self._messages = LineBuffer()
        self._reports = LineBuffer()
        self._log_text = LogText(log_limit or DEFAULT_LOG_LIMIT_BYTES)
        self._output_limit = output_limit or DEFAULT_OUTPUT_LIMIT_BYTES
        self._output_bytes = 0
        self._pidfd: int | None = None
        self._exited: Message | None = None
        self._open = {channel.fileno(), log, status.fileno()}
        self._answers = bytearray()
        self._is_asked = False

    def ping(self) -> None:
        """Tell the parent that the worker is alive; the parent kills a runner without pings."""
        try:
            self._status.send(encode({"type": "ping"}), socket.MSG_DONTWAIT)
        except OSError:
            return  # the runner has ended, which `messages` reports

    def answer(self, message: Message) -> None:
        """Answer the last message ``ask`` of `messages`.

        The answer is sent while `messages` is read: a runner that does not read keeps no worker
        waiting.
        """
        self._is_asked = False
        self._answers += encode(message)

    def stop(self) -> None:
        """Ask the runner to end its function and call its tear-down."""
        if self._exited is not None:
            return
        if self._pidfd is None:
            self.kill()  # no step has begun
            return
        with suppress(ProcessLookupError):  # it has ended
            signal.pidfd_send_signal(self._pidfd, signal.SIGTERM)

    def kill(self) -> None:
        """Kill the processes of the run; `messages` then reports the end."""
        if self._exited is not None:
            return  # the parent has killed the group: another may have its number by now
        if self._group is not None:
            self._group.end()
        if self.pid is None:
            # Not known yet: the parent kills the group when this end of the socket is closed, as
            # after the death of a worker.
            with suppress(OSError):
                self._status.shutdown(socket.SHUT_WR)
            return
        # Not by the group alone: the code of a run can put the runner into another group.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        if self._pidfd is not None:
            with suppress(ProcessLookupError):  # it has ended
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def messages(self, timeout: float) -> Iterator[Message]:
        """Yield the runner's messages, in order within each source:
        ``started`` first, ``exited`` last.

        ``{"type": "idle"}`` comes when there was no message within ``timeout`` seconds.
        """
        try:
            while self._exited is None:
                ready = self._wait(timeout)
                if not ready:
                    yield {"type": "idle"}
                for descriptor in ready:
                    yield from self._read(descriptor)
            self._exited = self._settled(self._exited)
            yield from self._drain()
            yield self._exited
        finally:
            self._close()

    def _wait(self, timeout: float) -> list[int]:
        poll, channel, status = select.poll(), self._channel.fileno(), self._status.fileno()
        # No other source is read until the process is known: the parent reports it after the fork,
        # when the process may have sent many messages already.
        watched = {status} if self.pid is None and status in self._open else self._open
        for descriptor in watched:
            poll.register(descriptor, select.POLLIN)
        if self._answers and channel in watched:
            poll.register(channel, select.POLLIN | select.POLLOUT)
        kernel_events = None if self._group is None else self._group.events
        if kernel_events is not None:
            poll.register(kernel_events, select.POLLPRI)
        events = poll.poll(timeout * 1000)
        if self._group is not None and kernel_events in dict(events):
            self._group.end_excessive()
            events = [event for event in events if event[0] != kernel_events]
        if any(fd == channel and event & select.POLLOUT for fd, event in events):
            self._send_answer()
        # The status comes last: messages that were sent before the end are read before it.
        order = [channel, self._log, status]
        return sorted((fd for fd, event in events if event != select.POLLOUT), key=order.index)

    def _send_answer(self) -> None:
        try:
            sent = self._channel.send(self._answers)
        except BlockingIOError:
            return  # no room after all
        except OSError:
            sent = len(self._answers)  # the runner has ended, which `messages` reports
        del self._answers[:sent]

    def _read(self, descriptor: int) -> Iterator[Message]:
        if descriptor == self._log and not self._has_log():
            return  # read already, for the sake of a message
        try:
            data = os.read(descriptor, _CHUNK_BYTES)
        except (ConnectionError, BlockingIOError):
            data = b""
        if not data:
            self._open.discard(descriptor)
        if descriptor == self._log:
            yield from self._log_text.feed(data)
        elif descriptor == self._channel.fileno():
            yield from self._hear_runner(data)
        else:
            yield from self._hear_parent(data)

    def _hear_runner(self, data: bytes) -> Iterator[Message]:
        try:
            for line in self._messages.lines(data):
                message = decode(line)
                self._check(message, len(line))
                if message["type"] == "step":
                    yield from self._log_so_far()
                yield message
        except _OutputLimitError as error:
            yield self._end_by_code(str(error))
        except WireError as error:
            # User code shares the process and can write to any descriptor. Its run ends here.
            yield self._end_by_code(f"the run's channel got an invalid message: {error}")

    def _log_so_far(self) -> Iterator[Message]:
        """Yield the log that a runner has written before its last message, which waits for an
        answer.
        """
        for _ in range(_CHUNKS_IN_PIPE):  # others may write without end: threads, child processes
            if self._log in self._open:
                yield from self._read(self._log)

    def _has_log(self) -> bool:
        poll = select.poll()
        poll.register(self._log, select.POLLIN)
        return bool(poll.poll(0))

    def _end_by_code(self, error: str) -> Message:
        """Kill the runner and stop reading the channel; return the failure of the run."""
        self._open.discard(self._channel.fileno())
        self.kill()
        return {
            "type": "failed", "kind": "code", "error": error, "traceback": "", "partition": None,
        }  # fmt: skip

    def _check(self, message: Message, size: int) -> None:
        refuse_malformed(message)
        if message["type"] in _KEPT_BY_WORKERS:
            self._output_bytes += size
            if self._output_bytes > self._output_limit:
                raise _OutputLimitError(
                    "the run reports more partitions than its worker keeps in memory: the reports"
                    f" take more than {self._output_limit} bytes (RUN_OUTPUT_LIMIT_BYTES and a"
                    " kilobyte for each partition of the run)"
                )
        if message["type"] in QUESTIONS:
            # A runner asks again when it has read the answer: no more than one ever waits here.
            if self._is_asked or self._answers:
                raise WireError("a question before the answer to the last question")
            self._is_asked = True

    def _hear_parent(self, data: bytes) -> Iterator[Message]:
        for message in self._reports.feed(data):
            if message["type"] == "started":
                self._know(int(message["pid"]))
                yield message
            else:
                self._exited = message
        if not data and self._exited is None:
            self._exited = self._end_without_parent()

    def _know(self, pid: int) -> None:
        self.pid = pid
        try:
            self._pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            self._pidfd = None  # ended already; the parent reports how

    def _end_without_parent(self) -> Message:
        """Return the end of a runner whose parent died: the kernel kills the
        runner, which is awaited here.
        """
        if self.pid is not None:
            self.kill()
        if self._pidfd is not None:
            select.select([self._pidfd], [], [], _GONE_PATIENCE_SECONDS)
        return {"type": "exited", "status": -signal.SIGKILL, "signal": int(signal.SIGKILL)}

    def _settled(self, exited: Message) -> Message:
        """Return the end of the run with the limit that the kernel has ended the run for; all
        processes of the run's control group are ended.
        """
        if self._group is None:
            return exited
        excess = self._group.excess()
        self._group.end()
        return exited if excess is None else {**exited, "excess": excess}

    def _drain(self) -> Iterator[Message]:
        """Yield the messages written before the end; no process is left to write more."""
        self._open.discard(self._status.fileno())
        deadline = time.monotonic() + _GONE_PATIENCE_SECONDS
        while self._open and time.monotonic() < deadline:
            ready = self._wait(0)
            if not ready:
                break
            for descriptor in ready:
                yield from self._read(descriptor)
        yield from self._log_text.finish()

    def _close(self) -> None:
        self._channel.close()
        self._status.close()
        os.close(self._log)
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None  # the number may soon be that of another file
        self._resources.release(is_user_gone=bool((self._exited or {}).get("is_user_gone")))
