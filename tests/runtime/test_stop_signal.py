"""The request to stop a run leaves no lock held that the tear-down needs."""

import subprocess
import sys
import textwrap

import pytest


def assert_prints(script: str, output: str) -> None:
    """Run a script of Python in a process of its own, and compare its output."""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
    )
    assert ended.stdout == output, ended.stderr


# The main thread of a run works, and gets the request again and again, each time in another run.
_STOPPED_AGAIN_AND_AGAIN = """
import asyncio, logging, os, queue, random, signal, sys, threading, time
from slicewise.runner.stop_signal import StopSignal
from slicewise.running.steps import RunStopped

logging.basicConfig(stream=open(os.devnull, "w"))
logger, full = logging.getLogger("busy"), queue.Queue()
condition, event = threading.Condition(), threading.Event()

def take_and_let_go():
    while True:
        with condition:
            pass

def log():
    while True:
        logger.warning("at work")

def put():
    while True:
        full.put(1)
        full.get()

def wait():
    event.wait(600)

def join():
    thread = threading.Thread(target=event.wait, args=(600,), daemon=True)
    with stop.held():
        thread.start()
    thread.join()

def compute():
    while True:
        sum(range(10))

def fork():
    while True:
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)

class Slow:
    def __del__(self):
        time.sleep(0.003)

def collect():
    while True:
        Slow()
        time.sleep(0.003)

async def take_turns():
    while True:
        sum(range(10_000))
        await asyncio.sleep(0)

async def keep_errors():
    while True:
        await asyncio.gather(take_turns(), take_turns(), return_exceptions=True)

async def wait_for_a_task():
    await asyncio.wait([asyncio.create_task(asyncio.sleep(600))])

def loop():
    asyncio.run(keep_errors())

async def hold():
    while True:
        with stop.held():
            time.sleep(0.001)
        await asyncio.sleep(0)

async def keep_errors_of_held():
    while True:
        await asyncio.gather(hold(), hold(), return_exceptions=True)

def held_loop():
    asyncio.run(keep_errors_of_held())

def idle_loop():
    asyncio.run(wait_for_a_task())

def needed_by_the_tear_down():
    with condition:
        logger.warning("torn down")
    full.put(1)
    full.get()

def ask():
    os.kill(os.getpid(), signal.SIGTERM)

def ask_beside():
    # As the kernel may do: the wait of the main thread goes on.
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

for _ in range({rounds}):
    stop = StopSignal(lambda: None)
    asking = threading.Timer(random.uniform(0.001, 0.005), random.choice([ask, ask_beside]))
    began = time.monotonic()
    try:
        with stop.raising():
            with stop.held():
                asking.start()
            {work}()
    except RunStopped:
        pass
    assert time.monotonic() - began < 10, "not stopped"
    tear_down = threading.Thread(target=needed_by_the_tear_down, daemon=True)
    tear_down.start()
    tear_down.join(10)
    assert not tear_down.is_alive(), "a lock is held for ever"
print("right")
"""


WORK = ["take_and_let_go", "log", "put", "wait", "join", "compute", "fork", "collect"]
WORK += ["loop", "held_loop", "idle_loop"]


@pytest.mark.parametrize("work", WORK)
def test_a_run_is_stopped_with_no_lock_held(work: str) -> None:
    script = textwrap.dedent(_STOPPED_AGAIN_AND_AGAIN).replace("{work}", work)
    assert_prints(script.replace("{rounds}", "60"), "right\n")


_WITH_A_HANDLER_OF_ITS_OWN = """
import os, signal, time
from slicewise.runner.stop_signal import StopSignal
from slicewise.running.steps import RunStopped

stop, heard = StopSignal(lambda: None), []

class Slow:
    def __enter__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
        time.sleep(0.2)

    def __exit__(self, *_):
        pass

try:
    with stop.raising():
        with Slow():
            print(len(heard))
except RunStopped:
    print("stopped")
"""


def test_a_handler_of_the_function_hears_no_repeated_request() -> None:
    assert_prints(_WITH_A_HANDLER_OF_ITS_OWN, "0\nstopped\n")


_AFTER_A_SIGNAL_OF_ANOTHER = """
import os, signal, time
from slicewise.runner.stop_signal import StopSignal

stop, heard = StopSignal(lambda: None), []
with stop.raising():
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    os.kill(os.getpid(), signal.SIGTERM)
    signal.signal(signal.SIGTERM, before)
    time.sleep(0.5)
print(heard, stop.is_asked)
"""


def test_a_signal_that_the_function_has_handled_is_no_request() -> None:
    assert_prints(_AFTER_A_SIGNAL_OF_ANOTHER, "[15] False\n")
