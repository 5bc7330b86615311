"""Many messages that ask for one thing cost one call at a time."""

import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import pytest

from assets_app.execution.queue.coalescing import Coalesced


def test_requests_during_a_call_are_answered_by_one_call_after_it() -> None:
    began, may_end = threading.Event(), threading.Event()
    calls: list[int] = []

    def look(number: int) -> None:
        calls.append(number)
        began.set()
        assert may_end.wait(120)

    looks = Coalesced(look)
    first = threading.Thread(target=looks.request, args=[0])
    first.start()
    assert began.wait(120)
    for number in range(1, 100):
        looks.request(number)
    assert calls == [0]
    may_end.set()
    first.join(120)
    assert calls == [0, 99]


def test_no_request_of_many_threads_is_lost_and_no_two_calls_overlap() -> None:
    request_count, seen_count, is_called = [0], [0], threading.Lock()

    def look() -> None:
        assert is_called.acquire(blocking=False)
        seen_count[0] = request_count[0]
        is_called.release()

    looks = Coalesced(look)

    def ask(_: int) -> None:
        request_count[0] += 1
        looks.request()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(ask, range(5_000)))
    assert seen_count == request_count


def test_a_call_that_fails_does_not_keep_the_next_one_away() -> None:
    outcomes = iter([ValueError("broken"), None])
    calls: list[object] = []

    def look() -> None:
        outcome = next(outcomes)
        calls.append(outcome)
        if outcome is not None:
            raise outcome

    looks = Coalesced(look)
    with pytest.raises(ValueError, match="broken"):
        looks.request()
    looks.request()
    assert len(calls) == 2


def test_a_call_that_takes_long_is_relieved_by_one_other_thread_at_a_time() -> None:
    calls: list[int] = []
    began = {number: threading.Event() for number in range(5)}
    may_end = {number: threading.Event() for number in range(5)}

    def look(number: int) -> None:
        calls.append(number)
        began[number].set()
        assert may_end[number].wait(120)

    def call_in_thread(number: int) -> threading.Thread:
        thread = threading.Thread(target=looks.request, args=[number])
        thread.start()
        return thread

    looks = Coalesced(look, relieved_after=0.0)
    hanging = call_in_thread(0)
    assert began[0].wait(120)
    relief = call_in_thread(1)
    assert began[1].wait(120)
    call_in_thread(2).join(120)
    assert calls == [0, 1], "there is one beside it already"
    may_end[1].set()
    relief.join(120)
    may_end[3].set()
    call_in_thread(3).join(120)
    assert calls == [0, 1, 3]
    may_end[0].set()
    hanging.join(120)
    assert calls == [0, 1, 3, 3], "what was asked for meanwhile is seen to by itself as well"


def test_a_call_that_is_about_to_begin_is_not_taken_for_one_that_takes_long() -> None:
    calls: list[int] = []
    looks = Coalesced(calls.append, relieved_after=3600.0)
    take_next = looks._next

    def ask_before(number: int) -> None:
        with patch.object(looks, "_next", take_next):
            looks.request(number)

    def next_but_late() -> tuple[int, ...] | None:
        if not calls:
            ask_before(2)
        return take_next()

    with patch.object(looks, "_next", next_but_late):
        looks.request(1)
    assert calls == [2]
