"""Answers that wait for news cost no thread, and end in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from slicewise_server.serving.long_poll import ASK_AGAIN, POSITION
from tests.attacks.asgi_requests import Exchange, ask


class News:
    """A WSGI application that has news from the given call on, and once a page was asked for; a
    poll may wait for `seconds`.
    """

    def __init__(self, *, from_call: int, seconds: int = 20) -> None:
        self.calls = 0
        self.positions: list[str | None] = []
        self._from_call, self._seconds = from_call, seconds

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        if environ["PATH_INFO"] != "/events/":
            self._from_call = 0
            start("200 OK", [])
            return [b"page"]
        self.calls += 1
        self.positions.append(environ.get(POSITION))
        if self.calls >= self._from_call:
            start("200 OK", [("Content-Length", "4")])
            return [b"news"]
        start("200 OK", [("Content-Length", "7"), (ASK_AGAIN, f"{self._seconds};{self.calls}")])
        return [b"nothing"]


class Leaving(Exchange):
    """A client that goes away as soon as the request is read."""

    async def receive(self) -> dict[str, Any]:
        return {"type": "http.disconnect"}


def test_a_poll_waits_for_news_and_the_client_does_not_see_how() -> None:
    news, poll = News(from_call=3), Exchange("/events/")
    ask(news, poll)
    assert (poll.status, poll.body, news.calls) == (200, b"news", 3)
    assert news.positions == [None, "1", "2"]
    assert ASK_AGAIN.lower().encode() not in poll.headers


def test_a_poll_without_news_ends_after_its_seconds() -> None:
    news, poll = News(from_call=1_000, seconds=1), Exchange("/events/")
    began = time.monotonic()
    ask(news, poll)
    assert time.monotonic() - began >= 1
    assert poll.body == b"nothing"
    assert ASK_AGAIN.lower().encode() not in poll.headers
    assert 2 <= news.calls <= 4


def test_waiting_polls_take_no_thread_from_pages() -> None:
    # A poll that kept the only thread would end without news, since the page would come after it.
    news = News(from_call=1_000, seconds=20)
    polls = [Exchange("/events/") for _ in range(20)]
    page = Exchange("/")
    ask(news, *polls, page, threads=1)
    assert page.body == b"page"
    assert news.positions[:20] == [None] * 20, "the polls came before the page"
    assert all(poll.body == b"news" for poll in polls)


def test_beyond_the_most_polls_a_poll_is_answered_without_news() -> None:
    news = News(from_call=1_000, seconds=1)
    polls = [Exchange("/events/") for _ in range(3)]
    ask(news, *polls, polls=1)
    assert [poll.body for poll in polls] == [b"nothing"] * 3
    assert news.calls <= 2 + 4


def test_a_client_that_goes_away_gives_its_place_back() -> None:
    news, poll = News(from_call=1_000, seconds=300), Leaving("/events/")
    began = time.monotonic()
    ask(news, poll)
    assert time.monotonic() - began < 100
    assert (news.calls, poll.sent) == (1, [])
