"""A real Prometheus lints the metrics, scrapes them, and answers each query of the dashboard."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client.parser import text_string_to_metric_families

from assets_app.models import Queue, RunState
from slicewise_server.metrics.counting import count_runs
from slicewise_server.metrics.request_counting import RequestCounts
from slicewise_server.metrics.scraping import Scraper
from tests.factories import DAILY_2013, asset
from tests.gateways import record_gateway
from tests.metrics.promtool import Prometheus, promtool, scraping
from tests.queued_runs import queue_runs
from tests.waiting import wait_until

PROJECT = Path(__file__).resolve().parents[2]
DASHBOARD = json.loads((PROJECT / "docs/grafana/slicewise.json").read_text())
GUIDE = (PROJECT / "docs/guides/metrics.md").read_text()
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
TOKEN = "0123456789abcdef0123456789abcdef"


def busy_server() -> None:
    """Put runs in all states, gateways and requests on record."""
    flights = asset("flights", DAILY_2013, group="flights")
    for queue in Queue:
        record_gateway(f"{queue}@here", queue=queue)
        queue_runs(flights, 3, queue)
        [ended] = queue_runs(flights, 1, queue).runs.all()
        now = timezone.now()
        for state, times in (
            (RunState.DISPATCHED, {"queued_at": now - timedelta(seconds=2)}),
            (RunState.RUNNING, {"started_at": now, "attempt_count": 1}),
            (RunState.PUBLISHING, {}),
            (RunState.SUCCEEDED, {"ended_at": now + timedelta(seconds=3)}),
        ):
            type(ended).objects.filter(pk=ended.pk).update(state=state, **times)
        [failed] = queue_runs(flights, 1, queue).runs.all()
        type(failed).objects.filter(pk=failed.pk).update(state=RunState.FAILED, ended_at=now)
    counts = RequestCounts()
    counts.add("pages|GET|200", 0.02)
    counts.add("api|POST|500", 0.2)
    counts.store()
    count_runs()


def text_of_scrape() -> str:
    return Scraper().expose("").text.decode()


def test_the_metrics_pass_the_linter_of_prometheus(db: None) -> None:
    busy_server()
    check = promtool("check", "metrics", text=text_of_scrape())
    assert (check.returncode, check.stdout + check.stderr) == (0, "")


def test_the_linter_finds_a_metric_against_the_conventions() -> None:
    check = promtool("check", "metrics", text="# TYPE slicewiseRuns counter\nslicewiseRuns 1\n")
    assert check.returncode != 0


def test_the_guide_names_every_metric_with_its_labels(db: None) -> None:
    busy_server()
    rows = {
        name: set(re.findall(r"`(\w+)`", labels))
        for names, labels in re.findall(r"^\| (`slicewise_[^|]*) \| ([^|]*)\|", GUIDE, re.M)
        for name in re.findall(r"`(\w+)`", names)
    }
    found = {}
    for family in text_string_to_metric_families(text_of_scrape()):
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        name = f"{family.name}_total" if family.type == "counter" else family.name
        found[name] = labels
    assert found == rows


def test_each_query_of_the_dashboard_and_the_guide_names_metrics_of_a_scrape(db: None) -> None:
    busy_server()
    names = {line.split("{")[0].split(" ")[0] for line in text_of_scrape().splitlines()}
    used = set(re.findall(r"slicewise_\w+", " ".join(query for _, query in QUERIES)))
    rules = GUIDE.partition("## Alerts of Prometheus")[2].partition("## Logs")[0]
    assert used | set(re.findall(r"slicewise_\w+", rules)) <= names
    assert len(used) > 15


def test_the_dashboard_has_the_form_that_grafana_reads() -> None:
    """Grafana's own types read the dashboard, and write it without a loss."""
    register_default_plugins()
    read = json.loads(json.dumps(Dashboard.from_json(DASHBOARD), cls=JSONEncoder))
    assert_within(DASHBOARD, read, "dashboard")


def assert_within(expected: Any, parsed: Any, place: str) -> None:
    if isinstance(expected, dict):
        for name, value in expected.items():
            assert name in parsed, f"{place}.{name} is no field"
            assert_within(value, parsed[name], f"{place}.{name}")
    elif isinstance(expected, list):
        assert len(expected) == len(parsed), place
        for index, (value, other) in enumerate(zip(expected, parsed, strict=True)):
            assert_within(value, other, f"{place}[{index}]")
    else:
        assert expected == parsed, place


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_the_rules_and_the_configuration_of_the_guide_are_valid(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", GUIDE, re.S)
    [config] = [block for block in blocks if "scrape_configs" in block]
    [rules] = [block for block in blocks if "groups:" in block]
    (tmp_path / "rules.yml").write_text(rules)
    checked = promtool("check", "rules", str(tmp_path / "rules.yml"))
    assert checked.returncode == 0, checked.stderr
    assert "7 rules found" in checked.stdout
    (tmp_path / "slicewise-token").write_text(TOKEN)
    (tmp_path / "prometheus.yml").write_text(config.replace("/etc/prometheus", str(tmp_path)))
    checked = promtool("check", "config", str(tmp_path / "prometheus.yml"))
    assert checked.returncode == 0, checked.stderr


@pytest.mark.slow
def test_prometheus_answers_each_query_of_the_dashboard(
    transactional_db: None,
    live_server: Any,
    settings: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.METRICS_TOKEN, settings.METRICS_NETWORKS = TOKEN, ()
    # The gateways on record send no heartbeat, and all these answers take a while.
    monkeypatch.setattr("assets_app.models.gateways.GATEWAY_SILENCE", timedelta(minutes=30))
    busy_server()
    target = live_server.url.removeprefix("http://")
    with scraping(target, TOKEN, tmp_path) as prometheus:
        empty = [title for title, query in QUERIES if not answer_to(prometheus, query)]
        jobs = prometheus.ask("label/job/values", **{"match[]": "slicewise_build_info"})
        slots = answer_to(prometheus, "sum(slicewise_gateway_slots)")
    assert empty == []
    assert jobs == ["slicewise"]
    assert float(slots[0]["value"][1]) == 6


def answer_to(prometheus: Prometheus, query: str) -> list[Any]:
    """Return the samples of a query, with the variables that Grafana would put in.

    After a scrape that took longer than its second, a query has no samples until the next scrape.
    """
    expression = query.replace("$job", ".*").replace("$__rate_interval", "1m")
    samples: list[Any] = []

    def is_answered() -> bool:
        samples[:] = prometheus.result_of(expression)
        return bool(samples)

    wait_until(is_answered)
    return samples
