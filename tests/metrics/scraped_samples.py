"""The samples of one scrape."""

from __future__ import annotations

from prometheus_client.core import Metric

from slicewise_server.metrics.collectors import COLLECTORS
from slicewise_server.metrics.counting import count_runs
from slicewise_server.metrics.scraping import collected


class Scraped:
    """All metrics of one scrape, by the names of their samples and by labels."""

    def __init__(self, families: list[Metric]) -> None:
        self.families = {family.name: family for family in families}
        self.samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
        }

    @classmethod
    def now(cls) -> Scraped:
        """Count the changes of runs, and scrape without a cache."""
        count_runs()
        return cls(collected(COLLECTORS))

    def __call__(self, name: str, **labels: str) -> float | None:
        """Return the value of a sample; None if there is no such sample."""
        return self.samples.get((name, frozenset(labels.items())))

    def series_of(self, name: str) -> list[dict[str, str]]:
        """Return the labels of all samples of a name."""
        return [dict(labels) for sample, labels in self.samples if sample == name]
