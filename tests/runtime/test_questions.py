"""Questions of runs to their worker, and messages about keys that runs find."""

import socket
import threading
from itertools import count
from typing import Any

import pytest

from slicewise.platform_failures import is_platform_failure
from slicewise.runner.channel import Channel, WorkerGoneError
from slicewise.runner.wire import encode, read_message
from tests.runtime.runs import Runs

DAYS = """
    DAYS = PartitionByInterval("@daily", start="2013-01-01", end="2014-01-01")
"""
DISCOVERING = """
    CUSTOMERS = PartitionAtRuntime("customers")
    @asset(partition=CUSTOMERS)
    def customers(context):
        for key in ("b", "a b", "b", 5):
            CUSTOMERS.add_partition(key=key)
        if context["params"].get("fails"):
            raise ValueError("after all")
"""


class Past:
    """A worker that knows ten days in pages of four, and remembers the questions."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def __call__(self, question: dict[str, Any]) -> dict[str, Any]:
        after = question["after"]
        self.asked.append(after)
        days = [f"2013-01-{day:02}" for day in range(10, 0, -1)]
        start = 0 if after is None else int(after)
        more = start + 4 < len(days)
        return {"keys": days[start : start + 4], "next": start + 4 if more else None}


def test_the_past_is_asked_for_page_by_page_and_no_further_than_it_is_looked_at(
    runs: Runs,
) -> None:
    runs.define(
        DAYS
        + """
    @asset(partition=DAYS)
    def days(context):
        past = context["partition"].iter_past_partitions()
        print(*(str(next(past)) for _ in range(context["params"]["wanted"])))
    """
    )
    runs.answer = past = Past()
    outcome = runs.run("days", ["2013-01-11"], params={"wanted": 3})
    assert outcome.log == "2013-01-10 2013-01-09 2013-01-08\n"
    assert past.asked == [None]
    outcome = runs.run("days", ["2013-01-11"], params={"wanted": 10})
    assert outcome.log.split()[-1] == "2013-01-01"
    assert past.asked == [None, None, 4, 8]
    assert [*outcome.types[-2:]] == ["finished", "exited"]


def test_threads_of_a_run_may_ask_side_by_side(runs: Runs) -> None:
    runs.define(
        DAYS
        + """
    @asset(partition=DAYS)
    def days(context):
        def look(found):
            partition = get_current_context()["partition"]
            found += [str(day) for day in partition.iter_past_partitions()]
        found = [[] for _ in range(8)]
        threads = [threading.Thread(target=look, args=(one,)) for one in found]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(all(one == found[0] for one in found), len(found[0]))
    """
    )
    runs.answer = Past()
    assert runs.run("days", ["2013-01-11"]).log == "True 10\n"


def test_past_partitions_that_the_definition_no_longer_has_are_left_out(runs: Runs) -> None:
    runs.define(
        DAYS
        + """
    @asset(partition=DAYS)
    def days(context):
        print(*map(str, context["partition"].iter_past_partitions()))
    """
    )
    runs.answer = lambda _: {"keys": ["2013-01-02", "2012-12-31", "nonsense"], "next": None}
    assert runs.run("days", ["2013-01-11"]).log == "2013-01-02\n"


def test_a_question_that_is_refused_fails_the_run_that_asks_it(runs: Runs) -> None:
    runs.define(
        DAYS
        + """
    @asset(partition=DAYS)
    def days(context):
        next(context["partition"].iter_past_partitions())
    """
    )
    runs.answer = lambda _: {"error": "no such thing"}
    outcome = runs.run("days", ["2013-01-11"])
    assert outcome.failure["error"] == "ValueError: the worker refuses the question: no such thing"
    assert outcome.failure["kind"] == "code"


def test_a_process_that_a_run_has_forked_is_told_that_it_cannot_ask(runs: Runs) -> None:
    runs.define(
        DAYS
        + """
    @asset(partition=DAYS)
    def days(context):
        past = context["partition"].iter_past_partitions()
        pid = os.fork()
        if not pid:
            try:
                next(past)
            except RuntimeError as error:
                print(error, flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        print(next(past))
    """
    )
    runs.answer = Past()
    log = runs.run("days", ["2013-01-11"]).log
    assert log.splitlines() == [
        "only the process of the run can ask the worker, not a forked process",
        "2013-01-10",
    ]


def test_a_run_that_does_not_read_its_answer_keeps_nobody_waiting(runs: Runs) -> None:
    runs.define("""
        @asset()
        def rude():
            os.write(3, b'{"type": "ask", "question": "past_partitions", "after": null}\\n')
            time.sleep(0.3)
            print("still heard", flush=True)
    """)
    numbers = count()
    runs.answer = lambda _: {"keys": [f"{next(numbers):0900}" for _ in range(1000)], "next": None}
    outcome = runs.run("rude")
    assert outcome.log == "still heard\n"
    assert outcome.types == ["started", "ask", "finished", "exited"]


@pytest.mark.parametrize(
    "written",
    [
        b'{"type": "ask", "question": "a"}\n{"type": "ask", "question": "b"}\n',
        b'{"type": "ask"}\n',
        b'{"type": ["ask"]}\n',
        b'{"type": "staged", "partitions": []}\n',
    ],
)
def test_a_run_that_asks_out_of_turn_or_says_half_a_message_fails(
    runs: Runs, written: bytes
) -> None:
    runs.define(f"""
        @asset()
        def forger():
            os.write(3, {written!r})
            time.sleep(60)
    """)
    runs.answer = lambda _: {"keys": ["0" * 900] * 1000, "next": None}
    outcome = runs.run("forger")
    assert outcome.types[-2:] == ["failed", "exited"]
    assert "channel" in outcome.failure["error"]
    assert outcome.messages[-1]["signal"] == 9


def test_a_question_ends_with_its_worker() -> None:
    ours, worker_end = socket.socketpair()
    channel = Channel(ours)

    def leave() -> None:
        read_message(worker_end, 1000)
        worker_end.close()

    worker = threading.Thread(target=leave)
    worker.start()
    with pytest.raises(WorkerGoneError) as caught:
        channel.ask("past_partitions", after=None)
    worker.join()
    assert is_platform_failure(caught.value)
    with pytest.raises(WorkerGoneError):
        channel.ask("past_partitions", after=None)
    ours.close()


def test_each_answer_goes_to_the_thread_that_asked() -> None:
    ours, worker_end = socket.socketpair()
    channel = Channel(ours)

    def answer() -> None:
        while (question := read_message(worker_end, 1000)) is not None:
            worker_end.sendall(encode({"number": question["number"]}))

    worker = threading.Thread(target=answer)
    worker.start()
    wrong: list[int] = []

    def ask(number: int) -> None:
        wrong.extend(
            number for _ in range(50) if channel.ask("echo", number=number)["number"] != number
        )

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ours.close()
    worker.join()
    worker_end.close()
    assert wrong == []


def test_keys_that_a_run_found_are_told_once_each_when_it_has_succeeded(runs: Runs) -> None:
    runs.define(DISCOVERING)
    outcome = runs.run("customers", [])
    assert outcome.types == ["started", "discovered", "finished", "exited"]
    (discovery,) = outcome.of_type("discovered")
    assert discovery == {"type": "discovered", "set": "customers", "keys": ["b", "a b", 5]}


def test_a_run_that_fails_has_found_nothing(runs: Runs) -> None:
    runs.define(DISCOVERING)
    outcome = runs.run("customers", [], params={"fails": True})
    assert outcome.types == ["started", "failed", "exited"]


def test_many_keys_are_told_in_messages_that_a_worker_takes(runs: Runs) -> None:
    runs.define("""
        CUSTOMERS = PartitionAtRuntime("customers")
        @asset(partition=CUSTOMERS)
        def customers():
            for number in range(3000):
                CUSTOMERS.add_partition(key=f"{number:0240}")
    """)
    outcome = runs.run("customers", [])
    keys = [key for message in outcome.of_type("discovered") for key in message["keys"]]
    assert keys == [f"{number:0240}" for number in range(3000)]
    assert outcome.types[-2:] == ["finished", "exited"]


def test_keys_of_a_set_found_at_run_time_come_as_what_they_were(runs: Runs) -> None:
    runs.define("""
        CUSTOMERS = PartitionAtRuntime("customers")
        @asset(partition=CUSTOMERS)
        def customers(context):
            print(context["partition"].keys)
    """)
    sent = ["a%20b", {"key": 5}, {"key": {"date": "2013-01-01"}}]
    assert runs.run("customers", sent).log == "('a b', 5, datetime.date(2013, 1, 1))\n"


def test_keys_are_of_the_users_own_class(runs: Runs) -> None:
    runs.define("""
        class Position(PartitionKey):
            x: float
            y: float
        PLACES = PartitionBySequence([Position(1.5, 2.0), Position(3.0, 4.0)], name="place")
        @asset(partition=PLACES)
        def raw(context): pass
        @asset(partition=PLACES)
        def near(raw, context):
            key = context["partition"].key
            print(type(key) is Position, key.x + key.y)
            print([type(one) is Position for one in raw.partitions])
            print(context["partition"].upstream("raw") == (key,))
    """)
    key = "1.5~2"
    log = runs.run("near", [key], upstream={"raw": [key]}).log
    assert log.splitlines() == ["True 3.5", "[True]", "True"]
