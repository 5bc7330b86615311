"""Fixtures of the tests of metrics: a played worker, a scraper without a memory, a client."""

from collections.abc import Callable

import pytest
from django.test import Client
from prometheus_client.core import Metric

from slicewise_server.metrics import views
from slicewise_server.metrics.scraping import Scraper
from tests.execution.conftest import alice, gateway, sent
from tests.metrics.scraped_samples import Scraped
from tests.supervised_runs import root, run, spark, worker

__all__ = ["alice", "gateway", "root", "run", "sent", "spark", "worker"]


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a statement of a collector take as long as a busy machine needs.

    Another test shows that a statement that takes long is ended.
    """
    monkeypatch.setattr("slicewise_server.metrics.scraping._STATEMENT_MILLISECONDS", 120_000)


@pytest.fixture
def scrape(db: None) -> Callable[[], Scraped]:
    """Return a function that counts what has changed, and collects all metrics anew."""
    return Scraped.now


@pytest.fixture
def scraper(monkeypatch: pytest.MonkeyPatch) -> Scraper:
    """Give the view a scraper that remembers nothing of other tests."""
    fresh = Scraper()
    monkeypatch.setattr(views, "_scraper", fresh)
    return fresh


@pytest.fixture
def scrapers_client(db: None, scraper: Scraper) -> Client:
    """Return a client on this host that gets answers, not tracebacks."""
    return Client(raise_request_exception=False, enforce_csrf_checks=True)


@pytest.fixture
def no_metrics(monkeypatch: pytest.MonkeyPatch) -> list[Metric]:
    """Let the view answer without a look at the database."""
    families: list[Metric] = []
    monkeypatch.setattr(views, "_scraper", Scraper({}))
    return families
