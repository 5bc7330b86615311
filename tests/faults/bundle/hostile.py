"""An asset whose code attacks its worker, each time in another manner."""

import json
import os
import random
import signal
import stat
import time
from pathlib import Path

from slicewise import asset

MANNERS = {}
_SECONDS = 600.0
_LINK = "hostile-link"


def manner(function):
    """Offer a function as a manner of the asset `hostile`."""
    MANNERS[function.__name__] = function
    return function


@asset(params={"manner": "", "seed": 0, "folders": ""})
def hostile(context):
    """Attack in the requested manner."""
    print("hostile as user", os.getuid(), flush=True)
    MANNERS[context["params"]["manner"]](context["params"])


def channels():
    """Return the sockets of the process: one socket leads to the worker."""
    numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    return [number for number in numbers if number > 2 and is_socket(number)]


def is_socket(number):
    """Return whether a descriptor is an open socket."""
    try:
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError:
        return False


def say(data):
    """Write to every channel; the worker ends the run after too many messages."""
    for number in channels():
        try:
            os.write(number, data)
        except OSError:
            continue


def stay():
    """Do not end by itself."""
    time.sleep(_SECONDS)


@manner
def messages(params):
    """Send random and mutated messages, some of them valid, until the worker ends the run."""
    chance = random.Random(params["seed"])
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        say(mutated(chance, sample(chance)))


def sample(chance):
    """Return a message as runners send messages, with values of any kind."""
    odd = [
        *(None, True, -1, 2**63, 10**4000, 1e308, float("nan"), float("-inf")),
        *("", "\ud800", "\0", "../../etc", "x" * 5000, [], {}, [[]], [1e308], [float("nan")]),
        *({"tuple": ["\ud800"]}, {"float": "nan"}, deep(chance.choice([50, 200, 700]))),
    ]
    value = lambda right: chance.choice([right, right, right, *odd])  # noqa: E731
    partition = {
        "key": value("2024-01-01"), "path": value("../../faults/steady"),
        "rows": value(1), "bytes": value(1),
    }  # fmt: skip
    return chance.choice(
        [
            {"type": "staged", "asset": value("steady"), "root": value("/etc"),
             "staging": value("/"), "partitions": value([partition])},
            {"type": "failed", "kind": value("platform"), "error": value("e"),
             "traceback": value("")},
            {"type": "spark", "application_id": value("app-1"), "ui": value("http://h")},
            {"type": "validated", "when": value("outlet"), "asset": value("steady"),
             "results": value([])},
            {"type": "discovered", "set": value("s"), "keys": value(["k"])},
            {"type": "unmade", "partitions": value([{"key": "k", "error": "e"}])},
            {"type": "ask", "question": value("inlets")},
            {"type": value("exited"), "status": 0, "signal": None},
            {"type": "finished"},
        ]
    )  # fmt: skip


def deep(levels):
    """Return lists in lists."""
    value = []
    for _ in range(levels):
        value = [value]
    return value


def mutated(chance, message):
    """Return the message as a line, most often spoiled by a byte or two."""
    if chance.random() < 0.1:
        message = {**message, chance.choice(["", "pid", "status", "x" * 100]): message["type"]}
    text = json.dumps(message)
    if chance.random() < 0.5:
        text = text.replace("1e+308", "1e999")
    line = bytearray(text.encode())
    for _ in range(chance.choice([0, 0, 0, 1, 2, 8])):
        line[chance.randrange(len(line))] = chance.randrange(256)
    if chance.random() < 0.1:
        line = bytearray(chance.randbytes(chance.randrange(1, 4096)))
    return bytes(line) + b"\n"


@manner
def gigabyte(params):
    """Send a gigabyte without the end of a line."""
    for _ in range(1024):
        say(b"x" * 1_048_576)
    stay()


@manner
def links(params):
    """Put a link into every folder that the code may write, then send a publication that would
    follow it, and nonsense.
    """
    link_and_publish(params)
    say(b"no message\n")
    stay()


@manner
def finishes(params):
    """Do the same, and end as a run ends that has succeeded."""
    link_and_publish(params)
    say(b'{"type": "finished"}\n')


def link_and_publish(params):
    """Put links into folders, and send a publication that would follow a link."""
    for top in params["folders"].split(":"):
        for folder, _, _ in os.walk(top):
            try:
                os.symlink("/etc/passwd", Path(folder) / _LINK)
                print("a link in", folder, flush=True)
            except OSError:
                continue
    partition = {"key": "", "path": _LINK, "rows": 1, "bytes": 1}
    forged = {"type": "staged", "root": "/etc", "staging": "/etc", "partitions": [partition]}
    say(json.dumps(forged).encode() + b"\n")


@manner
def memory(params):
    """Take all memory: only where a limit is set."""
    blocks = []
    while True:
        blocks.append(bytearray(os.urandom(1_048_576)) * 16)


@manner
def forks(params):
    """Fork processes that leave the group and hold on to all descriptors; then fail."""
    run = os.getpid()
    for _ in range(5):
        if os.fork() == 0:
            os.setsid()
    if os.getpid() != run:
        stay()
        os._exit(0)
    raise ValueError("they are many")


@manner
def signals(params):
    """Refuse all signals that can be refused, and send nonsense; the worker has to end the run."""
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    say(b"no message\n")
    stay()


@manner
def groups(params):
    """Leave the process group, for that of the warm parent, and send nonsense."""
    os.setpgid(0, os.getpgid(os.getppid()))
    say(b"no message\n")
    stay()


@manner
def descriptors(params):
    """Open as many descriptors as possible, in a child that outlives the run."""
    descriptors = []
    try:
        while True:
            descriptors.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    if os.fork() == 0:
        os.setsid()
        stay()
    for number in descriptors:
        os.close(number)
    raise ValueError("the child keeps them")
