"""Runners: for any act of user code, the worker hears of one end, and no process is left."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace

import pytest

from slicewise.runner import parent, processes
from slicewise.runner.follow import RunnerProcess
from slicewise.runner.parent import WarmParentLoop
from slicewise.runner.parent_client import RequestTooLargeError, WarmParent, WarmParentError
from slicewise.runner.run_groups import GroupEntry
from slicewise.runner.wire import REQUEST_LIMIT_BYTES, encode
from tests.processes import is_alive
from tests.runtime.runs import Runs, without_usage
from tests.waiting import wait_until

# It ends a hang. A stream that is idle for less than that says only what the runner does.
LONG = 60.0


def test_a_run_says_that_it_started_finished_and_exited(runs: Runs) -> None:
    runs.define("""
        @asset()
        def greeting(context):
            print("hello from", context["run_id"])
    """)
    outcome = runs.run("greeting")
    assert outcome.types == ["started", "finished", "exited"]
    assert without_usage(outcome.messages[-1]) == {"type": "exited", "status": 0, "signal": None}
    assert outcome.log == f"hello from {outcome.request['run_id']}\n"


def test_the_end_of_a_run_says_how_much_the_run_has_used(runs: Runs) -> None:
    runs.define("""
        import subprocess

        @asset()
        def idler():
            pass

        @asset()
        def worker():
            data = bytearray(300_000_000)
            while time.process_time() < 1.5:
                pass
            subprocess.run([sys.executable, "-c", "while __import__('time').process_time() < 1: 0"])
    """)
    idle = runs.run("idler").messages[-1]["usage"]
    busy = runs.run("worker").messages[-1]["usage"]
    assert idle["cpu_seconds"] < busy["cpu_seconds"] - 1
    assert 2.5 <= busy["cpu_seconds"] < 10
    # Pages that a process shares with its parent count as far as the process has read them.
    assert 280_000_000 < busy["peak_memory"] - idle["peak_memory"] < 400_000_000


def test_a_connection_that_the_other_side_has_closed_is_an_error_of_the_call(runs: Runs) -> None:
    runs.define("""
        import socket

        @asset()
        def sender():
            here, there = socket.socketpair()
            there.close()
            try:
                here.sendall(b"x")
            except BrokenPipeError:
                print("closed")
    """)
    outcome = runs.run("sender")
    assert without_usage(outcome.messages[-1]) == {"type": "exited", "status": 0, "signal": None}
    assert outcome.log == "closed\n"


def test_an_error_comes_with_the_lines_of_its_author_and_no_others(runs: Runs) -> None:
    runs.define("""
        @asset()
        def broken():
            helper()

        def helper():
            raise ValueError("no such airport\\nand more")
    """)
    outcome = runs.run("broken")
    assert outcome.types == ["started", "failed", "exited"]
    assert outcome.failure["kind"] == "code"
    assert outcome.failure["error"] == "ValueError: no such airport"
    lines = outcome.failure["traceback"].splitlines()
    assert lines[1].strip().startswith('File "assets.py"')
    assert "slicewise" not in outcome.failure["traceback"]


@pytest.mark.parametrize(
    ("statement", "status", "killed_by"),
    [
        ("os._exit(7)", 7, None),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9, 9),
        ("os.execv('/bin/sh', ['sh', '-c', 'exit 3'])", 3, None),
        ("os.abort()", -6, 6),
        ("os.kill(0, signal.SIGTERM)", -15, 15),
    ],
)
def test_user_code_that_ends_its_process_ends_its_run_only(
    runs: Runs, statement: str, status: int, killed_by: int | None
) -> None:
    runs.define(f"""
        @asset()
        def leaver():
            {statement}
    """)
    outcome = runs.run("leaver")
    assert outcome.types == ["started", "exited"]
    assert without_usage(outcome.messages[-1]) == {
        "type": "exited",
        "status": status,
        "signal": killed_by,
    }
    assert runs.parent.is_alive()


@pytest.mark.parametrize("statement", ["sys.exit(0)", "raise SystemExit", "raise GeneratorExit"])
def test_an_orderly_exit_is_no_success(runs: Runs, statement: str) -> None:
    runs.define(f"""
        @asset()
        def leaver():
            {statement}
    """)
    assert runs.run("leaver").types == ["started", "failed", "exited"]


def test_a_megabyte_of_output_is_kept_and_more_than_the_limit_is_cut_with_a_note(
    runs: Runs,
) -> None:
    runs.define("""
        @asset()
        def talker():
            for _ in range(16):
                os.write(1, b"x" * 65536)
            sys.stderr.write("end")
    """)
    outcome = runs.run("talker")
    assert outcome.log == "x" * 1_048_576 + "end"
    cut = runs.run("talker", log_limit=100_000)
    assert cut.log == "x" * 100_000 + "\n[the log is cut here: its limit is 100000 bytes]\n"
    assert cut.types == ["started", "finished", "exited"]


def test_text_that_is_not_utf_8_and_logging_reach_the_log(runs: Runs) -> None:
    runs.define("""
        import logging
        @asset()
        def talker():
            os.write(1, b"caf\\xc3\\xa9 \\xff\\n")
            logging.getLogger("flights").warning("late")
            subprocess.run(["echo", "from a child"])
    """)
    log = runs.run("talker").log
    assert "café \ufffd\n" in log
    assert "WARNING flights: late" in log
    assert "from a child" in log


def test_the_environment_and_descriptors_of_a_runner_show_the_allow_list_only(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "do not tell")
    runs.define("""
        import json
        @asset()
        def spy():
            ancestors, pid = [], os.getpid()
            for _ in range(2):
                try:
                    ancestors.append(open(f"/proc/{pid}/environ").read())
                except PermissionError:
                    ancestors.append("not to be read")
                pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
            print(json.dumps([sorted(os.environ), ancestors, os.listdir("/proc/self/fd")]))
    """)
    names, ancestors, descriptors = json.loads(runs.run("spy").log)
    assert names == ["LAKE", "LANG", "OPENBLAS_NUM_THREADS", "PATH", "PYTHONPATH"]
    assert not any("do not tell" in environment for environment in ancestors)
    assert len(descriptors) == 5  # stdin, stdout, stderr, the channel, and the listing itself


def test_a_run_that_spoils_its_channel_fails_and_nothing_it_forged_is_believed(runs: Runs) -> None:
    runs.define("""
        @asset()
        def forger():
            os.write(3, b'{"type": "exited", "status": 0, "signal": null}\\n')
            time.sleep(60)
    """)
    outcome = runs.run("forger")
    assert outcome.types == ["started", "failed", "exited"]
    assert "channel" in outcome.failure["error"]
    assert outcome.messages[-1]["signal"] == 9


def test_a_hanging_run_can_be_killed_with_what_it_started(runs: Runs) -> None:
    runs.define("""
        @asset()
        def hanger():
            child = subprocess.Popen(["sleep", "300"])
            daemon = subprocess.Popen(["sleep", "300"], start_new_session=True)
            print(child.pid, daemon.pid, flush=True)
            time.sleep(300)
    """)
    runner = runs.launch("hanger")
    stream = runner.messages(LONG)
    log = next(message["text"] for message in stream if message["type"] == "log")
    runner.kill()
    assert [message["type"] for message in stream] == ["exited"]
    for pid in map(int, log.split()):
        assert wait_until(lambda pid=pid: not is_alive(pid))  # type: ignore[misc]


def test_an_ended_runner_is_not_killed_by_a_process_id_that_may_be_reused(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.define("""
        @asset()
        def quick():
            pass
    """)
    runner = runs.launch("quick")
    list(runner.messages(LONG))
    killed: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, _: killed.append(group))
    runner.kill()
    assert killed == []


def test_one_that_could_not_be_forked_says_why_and_may_be_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fork() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fork)
    (status, runner_end), (channel, ours) = socket.socketpair(), socket.socketpair()
    control, (log, end) = socket.socketpair(), os.pipe()
    loop = WarmParentLoop(control[0], lambda *_: 0)
    loop._fork({"op": "run"}, ours.fileno(), end, runner_end, GroupEntry(()))
    ours.close()
    os.close(end)
    runner = RunnerProcess(channel=channel, log=log, status=status)
    (exited,) = runner.messages(LONG)
    assert exited["error"] == "fork: [Errno 11] Resource temporarily unavailable"
    runner.kill()


def test_the_end_of_one_run_spares_what_another_has_detached(runs: Runs) -> None:
    runs.define("""
        @asset()
        def hanger():
            for new_session in (False, True):
                # The shell ends at once, and what it started in the background is an orphan.
                subprocess.run(
                    ["sh", "-c", "sleep 300 >/dev/null 2>&1 & echo $!"],
                    start_new_session=new_session,
                )
            print("done", flush=True)
            time.sleep(300)
        @asset()
        def quick():
            pass
    """)
    runner = runs.launch("hanger")
    stream, log = runner.messages(LONG), ""
    while "done" not in log:
        log += next(message["text"] for message in stream if message["type"] == "log")
    detached = [int(text) for text in log.split()[:2]]
    assert runs.run("quick").types == ["started", "finished", "exited"]
    assert all(map(is_alive, detached))
    runner.kill()
    assert [message["type"] for message in stream] == ["exited"]
    assert wait_until(lambda: not any(map(is_alive, detached)))


def test_a_runner_that_hears_no_ping_is_killed(runs: Runs) -> None:
    runs.define("""
        @asset()
        def hanger():
            signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
            while True:
                time.sleep(60)
    """)
    started = time.monotonic()
    messages = list(runs.launch("hanger", watchdog=1).messages(LONG))
    # The last number is the limit that the runner exceeded: its own, and no default.
    assert without_usage(messages[-1]) == {
        "type": "exited",
        "status": -9,
        "signal": 9,
        "no_renewal": 1.0,
    }
    assert time.monotonic() - started > 0.9


def test_a_runner_that_hears_pings_goes_on(runs: Runs) -> None:
    runs.define("""
        @asset()
        def slow():
            time.sleep(18)
    """)
    # On a busy machine the test sends no ping for some seconds.
    assert runs.run("slow", watchdog=15).types == ["started", "finished", "exited"]


def test_a_dead_parent_ends_its_runners_and_is_replaced(tmp_path: Path) -> None:
    parent = WarmParent(env={"PATH": os.environ["PATH"]}, cache=tmp_path / "cache")
    runs = Runs(parent, tmp_path, remote=None)
    runs.define("""
        @asset()
        def hanger():
            print(os.getpid(), flush=True)
            time.sleep(300)
        @asset()
        def quick():
            pass
    """)
    runner = runs.launch("hanger")
    stream = runner.messages(LONG)
    pid = next(int(message["text"]) for message in stream if message["type"] == "log")
    assert parent.pid is not None
    os.kill(parent.pid, signal.SIGKILL)
    assert [message["type"] for message in stream] == ["exited"]
    assert not is_alive(pid)
    assert runs.run("quick").types == ["started", "finished", "exited"]
    parent.close()
    assert not parent.is_alive()


WORKER = """
import os, sys, json
from pathlib import Path
from slicewise.runner import parent, processes
from slicewise.runner.parent_client import RequestTooLargeError, WarmParent, WarmParentError
parent = WarmParent(env={"PATH": os.environ["PATH"]}, cache=Path(sys.argv[1]))
runner = parent.launch(json.loads(sys.argv[2]))
for message in runner.messages(0.2):
    runner.ping()
    if message["type"] == "log":
        print(parent.pid, message["text"].strip(), flush=True)
"""


def test_the_death_of_a_worker_ends_parent_and_runner(runs: Runs, tmp_path: Path) -> None:
    runs.define("""
        @asset()
        def hanger():
            print(os.getpid(), flush=True)
            time.sleep(300)
    """)
    # No ping is missed for so long that the runner ends for want of pings.
    request = json.dumps(runs.request("hanger", watchdog=600))
    command = [sys.executable, "-c", WORKER, str(tmp_path / "cache"), request]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        pids = [int(text) for text in worker.stdout.readline().split()]
        assert len(pids) == 2
        worker.kill()
    assert wait_until(lambda: not any(map(is_alive, pids)))


def test_a_stopped_worker_does_not_keep_its_runner_alive(runs: Runs, tmp_path: Path) -> None:
    runs.define("""
        @asset()
        def hanger():
            print(os.getpid(), flush=True)
            time.sleep(300)
    """)
    # A busy machine may stop the worker for some seconds before the test does.
    request = json.dumps(runs.request("hanger", watchdog=15))
    command = [sys.executable, "-c", WORKER, str(tmp_path / "cache"), request]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        _, pid = (int(text) for text in worker.stdout.readline().split())
        worker.send_signal(signal.SIGSTOP)
        assert wait_until(lambda: not is_alive(pid), 120)
        worker.kill()


def test_a_bundle_that_is_not_there_is_a_failure_of_the_platform(runs: Runs) -> None:
    runs.define("@asset()\ndef quick(): pass")
    with pytest.raises(WarmParentError, match=r"/no/such\.tar\.gz"):
        runs.run("quick", bundle={"digest": "missing", "archive": "/no/such.tar.gz"})
    assert runs.run("quick").types[-1] == "exited"


def test_a_request_that_no_runner_would_read_is_refused_before_there_is_one(runs: Runs) -> None:
    runs.define("@asset()\ndef quick(): pass")
    with pytest.raises(RequestTooLargeError, match="Write fewer partitions in one run"):
        runs.run("quick", params={"keys": "x" * REQUEST_LIMIT_BYTES})
    assert runs.run("quick").types[-1] == "exited"


def test_runs_at_the_same_time_do_not_disturb_each_other(runs: Runs) -> None:
    runs.define("""
        @asset()
        def numbered(context):
            time.sleep(0.2)
            print(context["params"]["number"])
    """)
    runners = [runs.launch("numbered", params={"number": n}) for n in range(8)]
    logs = [
        "".join(m["text"] for m in runner.messages(LONG) if m["type"] == "log").strip()
        for runner in runners
    ]
    assert logs == [str(n) for n in range(8)]


def test_the_start_is_heard_first_however_late_anybody_listens(runs: Runs) -> None:
    runs.define("""
        @asset()
        def early():
            print("at work", flush=True)
    """)
    runner = runs.launch("early")
    time.sleep(2)  # until the runner has said all that it says
    stream = runner.messages(LONG)
    assert next(stream)["type"] == "started"
    assert runner.pid is not None
    assert [m["type"] for m in stream if m["type"] != "log"] == ["finished", "exited"]


def test_the_start_is_heard_first_although_the_runner_spoke_before_its_parent() -> None:
    channel, runner_end = socket.socketpair()
    status, parent_end = socket.socketpair()
    log, log_end = os.pipe()
    process = RunnerProcess(channel=channel, log=log, status=status)
    os.write(log_end, b"at work\n")
    stream = process.messages(0.05)
    assert next(stream) == {"type": "idle"}
    parent_end.sendall(encode({"type": "started", "pid": os.getpid()}))
    assert [next(stream) for _ in range(2)] == [
        {"type": "started", "pid": os.getpid()},
        {"type": "log", "text": "at work\n"},
    ]
    parent_end.sendall(encode({"type": "exited", "status": 0, "signal": None}))
    assert next(stream)["type"] == "exited"
    stream.close()  # type: ignore[attr-defined]
    os.close(log_end)
    runner_end.close()
    parent_end.close()


def test_a_run_that_fills_its_worker_s_memory_is_ended_with_a_clear_error(runs: Runs) -> None:
    runs.define("""
        @asset()
        def boundless():
            row = {"key": "x" * 200, "path": "", "rows": 1, "bytes": 1}
            said = {"type": "staged", "root": "", "staging": "", "partitions": [row] * 100}
            line = __import__("json").dumps(said).encode() + b"\\n"
            while True:
                left = line
                while left:
                    left = left[os.write(3, left):]
    """)
    outcome = runs.run("boundless", output_limit=1_000_000)
    assert "1000000 bytes (RUN_OUTPUT_LIMIT_BYTES" in outcome.failure["error"]
    assert outcome.failure["kind"] == "code"
    assert outcome.messages[-1]["signal"] == signal.SIGKILL
    staged_size = sum(len(json.dumps(message)) for message in outcome.of_type("staged"))
    assert 900_000 < staged_size < 1_100_000


def test_no_code_begins_once_the_lease_it_was_asked_under_may_be_over(runs: Runs) -> None:
    runs.define("""
        @asset()
        def late():
            print("at work")
    """)
    outcome = runs.run("late", not_after=time.monotonic() - 0.001)
    assert outcome.types == ["exited"]
    assert "request for this run is too old" in outcome.messages[-1]["error"]
    assert "at work" not in outcome.log
    assert runs.run("late", not_after=time.monotonic() + 60).log == "at work\n"


def test_a_runner_that_was_stopped_before_it_could_begin_is_no_fault_of_its_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moments = chain([0.0], repeat(2.0))
    # Of the parent alone: another thread of this process may look at the clock meanwhile.
    monkeypatch.setattr(parent, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    ours, runner_end = socket.socketpair()
    channel, channel_end = socket.socketpair()
    loop = WarmParentLoop(ours, lambda *_: 0)
    entry = GroupEntry(())
    loop._fork({"op": "run", "not_after": 1.0}, channel_end.fileno(), -1, runner_end, entry)
    (pid,) = loop._runners
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    message = json.loads(channel.recv(4096))
    assert (message["type"], message["kind"]) == ("failed", "platform")
    assert "request for this run is too old" in message["error"]
    for end in (ours, runner_end, channel, channel_end):
        end.close()


def test_a_runner_without_pings_lives_no_longer_than_the_lease_it_was_asked_under(
    runs: Runs,
) -> None:
    runs.define("""
        @asset()
        def hanger():
            time.sleep(600)
    """)
    # Of 600 s between pings all but fifteen had gone by when the runner was asked for.
    runner = runs.launch("hanger", watchdog=600, not_after=time.monotonic() + 15)
    started_at = time.monotonic()
    assert list(runner.messages(LONG))[-1]["signal"] == signal.SIGKILL
    assert time.monotonic() - started_at < 120


def test_where_memory_is_short_the_kernel_ends_a_run_before_its_worker(runs: Runs) -> None:
    runs.define("""
        @asset()
        def large():
            for process in ("self", os.getppid()):
                print(open(f"/proc/{process}/oom_score_adj").read().strip())
    """)
    own_score, parent_s = map(int, runs.run("large").log.split())
    assert (own_score, parent_s < own_score) == (1000, True)


def test_an_orphan_that_cannot_end_keeps_no_other_run_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kill, killed = os.kill, []
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append(pid))
    with subprocess.Popen(["sleep", "300"]) as orphan:
        monkeypatch.setattr(parent, "children", lambda: [orphan.pid])
        control, runner_end = socket.socketpair()
        with control, runner_end:
            loop = WarmParentLoop(control, lambda *_: 0)
            started_at = time.monotonic()
            loop._end_orphans()  # as after each run
            loop._end_orphans()
            assert time.monotonic() - started_at < 60
            assert set(killed) == {orphan.pid}
            kill(orphan.pid, signal.SIGKILL)
            monkeypatch.setattr(parent, "children", list)
            assert wait_until(lambda: _is_reaped_by(loop, orphan.pid))


def _is_reaped_by(loop: WarmParentLoop, pid: int) -> bool:
    loop._reap_lingering()
    return not Path(f"/proc/{pid}").exists()


def test_orphans_that_others_follow_for_ever_do_not_hold_up_the_parent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    until = time.monotonic() + 120

    def one_more() -> list[int]:
        if time.monotonic() > until:
            return []
        pid = os.posix_spawn("/bin/true", ["true"], {})
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return [pid]

    monkeypatch.setattr(parent, "children", one_more)
    monkeypatch.setattr(parent, "_ORPHAN_SECONDS", 0.2)
    ours, runner_end = socket.socketpair()
    with ours, runner_end:
        loop = WarmParentLoop(ours, lambda operation, channel, log: 0)
        started_at = time.monotonic()
        loop._end_orphans()
        assert time.monotonic() - started_at < 60
        looked: list[bool] = []

        def none_left() -> list[int]:
            looked.append(True)
            return []

        monkeypatch.setattr(parent, "children", none_left)
        loop._reap_lingering()
        assert looked  # what was given up is seen to later


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_user_that_stops_what_is_to_end_it_does_not_hold_up_the_parent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_slow(signum: int, frame: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(processes, "become", lambda user: os.kill(os.getpid(), signal.SIGSTOP))
    previous = signal.signal(signal.SIGALRM, too_slow)
    signal.alarm(60)
    try:
        assert processes.end_all_of((1_999_999_999, 1_999_999_999)) is False
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
