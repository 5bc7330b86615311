"""Functions that look into the processes of other runs."""

import json
from collections.abc import Iterator
from typing import Any

from slicewise.runner.follow import RunnerProcess
from tests.runtime.runs import Runs

REFUSED = {
    "memory": "EACCES",
    "environment": "EACCES",
    "descriptors": "EACCES",
    "another's descriptor": "EPERM",
    "as a debugger": "EPERM",
}
# What a debugger and a thief of descriptors do; each says what came of it.
SPY = """
    import ctypes, errno, json
    libc = ctypes.CDLL(None, use_errno=True)

    @asset()
    def victim():
        secret = "the victim's" + " own secret"
        print(os.getpid(), flush=True)
        time.sleep(300)

    def tried(act):
        ctypes.set_errno(0)
        try:
            found = act()
            number = ctypes.get_errno()
            return "got it" if found != -1 else errno.errorcode[number]
        except OSError as error:
            return errno.errorcode[error.errno]

    def stolen(pid):
        return libc.syscall(438, os.pidfd_open(pid), 3, 0)

    def traced(pid):
        found = libc.ptrace(0x4206, pid, None, None)  # PTRACE_SEIZE
        return found

    @asset()
    def spy(context):
        answers = {}
        for name, pid in context["params"].items():
            answers[name] = {
                "memory": tried(lambda: open(f"/proc/{pid}/mem", "rb").fileno()),
                "environment": tried(lambda: open(f"/proc/{pid}/environ", "rb").fileno()),
                "descriptors": tried(lambda: len(os.listdir(f"/proc/{pid}/fd"))),
                "another's descriptor": tried(lambda: stolen(pid)),
                "as a debugger": tried(lambda: traced(pid)),
            }
        print(json.dumps([os.getuid(), answers]), flush=True)
"""


def read_pid(runner: RunnerProcess) -> tuple[int, Iterator[dict[str, Any]]]:
    """Return the number that a run has printed, and the later messages of the run."""
    messages = runner.messages(60)
    pid = next(int(message["text"]) for message in messages if message["type"] == "log")
    return pid, messages


def spied(runs: Runs) -> tuple[int, dict[str, Any]]:
    """Return the user of a spy, and the results of its acts on another run and the warm parent."""
    runs.define(SPY)
    runner = runs.launch("victim")
    pid, messages = read_pid(runner)
    outcome = runs.run("spy", params={"victim": pid, "parent": runs.parent.pid})
    runner.kill()
    assert list(messages)[-1]["type"] == "exited"
    user, answers = json.loads(outcome.log)
    return user, answers
