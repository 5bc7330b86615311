"""The limits of one run on its host: memory, processes, open files.

The kernel counts memory and processes of a run that has a control group (`run_groups`). Elsewhere
the kernel counts files for each process and processes for each user, and the kernel's own limit of
memory counts reserved memory, of which Java and Arrow reserve much that they never use. So the warm
parent adds up the memory in use by the processes of a run, and ends a run that exceeds its limit.
"""

import errno
import os
import resource
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from slicewise.texts.memory_sizes import memory_text

PROCESSES_SETTING = "SLICEWISE_RUN_PROCESSES"
OPEN_FILES_SETTING = "SLICEWISE_RUN_OPEN_FILES"
MEMORY_SETTING = "SLICEWISE_RUN_MEMORY"
MEMORY_OPTION = "memory= of the asset"

_KIBIBYTES = ("RssAnon", "RssShmem", "VmSwap")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """The limits of one run; None is no limit."""

    memory: int | None = None
    memory_by: str = ""
    """The origin of the limit of memory: MEMORY_OPTION, or a setting."""
    processes: int | None = None
    """Threads count as processes do."""
    open_files: int | None = None
    in_group: bool = False
    """Whether a control group limits memory and processes of the run."""

    @classmethod
    def of(cls, facts: Mapping[str, Any] | None) -> Self:
        """Return the limits that `to_json` has written; no limits for None."""
        return cls(**(facts or {}))

    def to_json(self) -> dict[str, Any]:
        """Return the limits as JSON."""
        return asdict(self)

    def impose(self, *, is_only_user: bool) -> None:
        """Have the kernel limit this process and its descendants as far as the kernel can.

        The kernel counts processes by user: ``is_only_user`` says that no other run has this
        process's user.
        """
        _lower(resource.RLIMIT_CORE, 0)
        _lower(resource.RLIMIT_NOFILE, self.open_files)
        # The worker sees a refusal by the group, and none by this limit.
        if is_only_user and not self.in_group:
            _lower(resource.RLIMIT_NPROC, self.processes)

    @property
    def needs_memory_checks(self) -> bool:
        """Whether the warm parent has to add up the run's memory, as often as it can."""
        return self.memory is not None and not self.in_group

    def excess(self, pid: int) -> str | None:
        """Return a sentence about the limit that a run exceeds, given the run's first process; None
        if the run is within its limits, or a control group limits the run.
        """
        if self.in_group or (self.memory is None and self.processes is None):
            return None
        memory = threads = 0
        for process in process_tree(pid):
            usage = _usage(process)
            memory += usage[0]
            threads += usage[1]
        if self.memory is not None and memory > self.memory:
            return (
                f"The run had {memory_text(memory)} in memory, and its limit is"
                f" {memory_text(self.memory)} ({self.memory_by}); the run was stopped."
            )
        if self.processes is not None and threads >= self.processes:
            return self.out_of_processes(threads)
        return None

    def out_of_memory(self) -> str:
        """Return the sentence about a run that the kernel has ended for lack of memory."""
        limit = "no limit" if self.memory is None else memory_text(self.memory)
        return (
            "The run asked for more memory than it may have, and its limit is"
            f" {limit} ({self.memory_by}); the run was stopped."
        )

    def out_of_processes(self, threads: int) -> str:
        """Return the sentence about a run with so many processes and threads."""
        return (
            f"The run had {threads:,} processes and threads, and its limit is"
            f" {self.processes:,} (setting {PROCESSES_SETTING} of the server); the run was stopped."
        )

    def advice(self, error: BaseException) -> str | None:
        """Return a sentence for an error that is due to one of the kernel's
        limits; None for other errors.

        Without the sentence the error shows a number that no user knows.
        """
        number = getattr(error, "errno", None) if isinstance(error, OSError) else None
        if number == errno.EMFILE and self.open_files is not None:
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            return (
                f"A process of a run may have {soft:,} files open (setting {OPEN_FILES_SETTING} of"
                " the server)."
            )
        is_counted = self.in_group or (
            resource.getrlimit(resource.RLIMIT_NPROC)[0] == self.processes
        )
        if (
            self.processes is not None
            and is_counted
            and (number == errno.EAGAIN or "can't start new thread" in str(error))
        ):
            return (
                f"A run may have {self.processes:,} processes and threads (setting"
                f" {PROCESSES_SETTING} of the server)."
            )
        return None


def process_tree(pid: int) -> Iterator[int]:
    """Yield the process and its descendants; a process that ends meanwhile may be left out."""
    pending = [pid]
    while pending:
        process = pending.pop()
        yield process
        try:
            tasks = os.listdir(f"/proc/{process}/task")
        except OSError:
            continue  # the process has ended
        for task in tasks:
            try:
                child_ids = Path(f"/proc/{process}/task/{task}/children").read_text()
            except OSError:
                continue
            pending += map(int, child_ids.split())


def _usage(pid: int) -> tuple[int, int]:
    """Return (bytes, threads): memory in use or swapped out without files,
    and the number of threads.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:
        return 0, 0
    facts = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    memory = sum(int(facts[name].split()[0]) for name in _KIBIBYTES if name in facts)
    return memory * 1024, int(facts.get("Threads", "1"))


def _lower(kind: int, limit: int | None) -> None:
    if limit is None:
        return
    soft, hard = resource.getrlimit(kind)
    wanted = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(
        kind, (wanted if soft == resource.RLIM_INFINITY else min(soft, wanted), wanted)
    )
