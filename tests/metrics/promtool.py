"""Debian's Prometheus: `promtool`, and a server that scrapes and answers queries."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import requests

from slicewise_server.stack import ports

_PROJECT = Path(__file__).resolve().parents[2]
_START_SECONDS = 300.0


@cache
def programs() -> Path:
    """Return the folder of `prometheus` and `promtool`, which a script downloads.

    Skips the test on a machine without both that is no Debian: `make test` asks for no more than
    Python there. Other tests of metrics check names and values without Prometheus.
    """
    script = subprocess.run(
        [_PROJECT / "bin" / "ensure-prometheus"], stdout=subprocess.PIPE, text=True, check=False
    )
    if script.returncode != 0:
        pytest.skip("there is no Prometheus, and no Debian package of it to be had")
    return Path(script.stdout.strip())


def promtool(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run `promtool` with a text as its input."""
    return subprocess.run(
        [programs() / "promtool", *arguments],
        input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip


class Prometheus:
    """A Prometheus server under way."""

    def __init__(self, address: str) -> None:
        self._address = address

    def ask(self, path: str, **query: str) -> Any:
        """Return the data of an answer of the API."""
        answer = requests.get(f"{self._address}/api/v1/{path}?{urlencode(query)}", timeout=60)
        body = answer.json()
        assert body["status"] == "success", body
        return body["data"]

    def result_of(self, expression: str) -> list[dict[str, Any]]:
        """Return the samples that an expression has now."""
        samples: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        return samples


@contextmanager
def scraping(target: str, token: str, folder: Path) -> Iterator[Prometheus]:
    """Start a Prometheus that scrapes a target each second, and end it after the block."""
    (folder / "token").write_text(token)
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [
            {
                "job_name": "slicewise",
                "authorization": {"credentials_file": str(folder / "token")},
                "static_configs": [{"targets": [target]}],
            }
        ],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))
    (port,) = ports.pick(1)
    process = subprocess.Popen(
        [
            programs() / "prometheus",
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=error",
        ]
    )
    try:
        server = Prometheus(f"http://127.0.0.1:{port}")
        _wait_for_scrapes(server)
        yield server
    finally:
        process.kill()
        process.wait()


def _wait_for_scrapes(server: Prometheus) -> None:
    """Wait until the target was scraped four times with success, for rates."""
    latest = time.monotonic() + _START_SECONDS
    while time.monotonic() < latest:
        try:
            samples = server.result_of("sum_over_time(up[1m])")
            if samples and float(samples[0]["value"][1]) >= 4:
                return
        except requests.RequestException:
            pass
        time.sleep(0.2)
    raise TimeoutError("Prometheus has scraped nothing.")
