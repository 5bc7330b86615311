"""Runs of a bundle that the test writes, on a warm parent; the test plays the worker."""

import textwrap
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from slicewise.io import StorageLocation, Writer, storage_at
from slicewise.loading.archives import archive
from slicewise.loading.importing import load_bundle
from slicewise.runner.parent_client import RunnerProcess, WarmParent

HEADER = """
import os, signal, subprocess, sys, threading, time
from slicewise import *
LAKE = {lake!r}
"""

_run_ids = count(1)


def clock_ahead_by(error: timedelta) -> dict[str, Any]:
    """Return a worker's message on a database's clock that is ahead of this host's by the error."""
    return {
        "database": (datetime.now(UTC) + error).isoformat(),
        "monotonic": time.monotonic(),
    }


def without_usage(exit_message: dict[str, Any]) -> dict[str, Any]:
    """Return the last message of a run without the numbers that no two runs have in common."""
    assert set(exit_message["usage"]) == {"cpu_seconds", "peak_memory"}
    return {name: value for name, value in exit_message.items() if name != "usage"}


@dataclass
class Outcome:
    """All messages of a run."""

    request: dict[str, Any]
    messages: list[dict[str, Any]] = field(default_factory=list)

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """Return the messages of one type."""
        return [message for message in self.messages if message["type"] == kind]

    @property
    def types(self) -> list[str]:
        """The types of all messages but logs and idle ones."""
        return [m["type"] for m in self.messages if m["type"] not in ("log", "idle")]

    @property
    def log(self) -> str:
        """The whole log."""
        return "".join(message["text"] for message in self.of_type("log"))

    @property
    def failure(self) -> dict[str, Any]:
        """The only failure."""
        (failed,) = self.of_type("failed")
        return failed

    @property
    def staged(self) -> dict[str, dict[str, Any]]:
        """Staged partitions by key text."""
        partitions = [
            partition for message in self.of_type("staged") for partition in message["partitions"]
        ]
        return {partition["key"]: partition for partition in partitions}


class Runs:
    """Runs of one bundle."""

    def __init__(
        self,
        parent: WarmParent,
        folder: Path,
        *,
        remote: str | None = None,
        submit: Mapping[str, Any] | None = None,
    ) -> None:
        self.parent = parent
        self.folder = folder
        self.lake = folder / "lake"
        self.bundle = folder / "bundle"
        self.remote = remote
        self.submit = submit
        """What the engine ``submit`` is told, but for what differs from run to run."""
        self.connections: Mapping[str, Mapping[str, Any]] = {}
        """What the worker knows of locations, by the beginnings of their URIs."""
        self.answer: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        """What this worker answers to a question; without, it answers none."""
        self._producers: dict[str, Any] = {}
        self._outlets: dict[str, Any] = {}
        self._archive: dict[str, str] = {}

    def define(self, text: str, *, file: str = "assets.py") -> None:
        """Write a definition file, which may use LAKE and all public names, and load the file."""
        self.bundle.mkdir(exist_ok=True)
        source = HEADER.format(lake=f"file://{self.lake}") + textwrap.dedent(text)
        (self.bundle / file).write_text(source)
        report = load_bundle(self.bundle)
        assert [entry["error"] for entry in report["files"]] == [None] * len(report["files"])
        self._producers = {producer["name"]: producer for producer in report["producers"]}
        self._outlets = {
            outlet["name"]: {"partition": producer["partition"], **outlet}
            for producer in report["producers"]
            for outlet in producer["outlets"]
        } | {declared["name"]: declared for declared in report["assets"]}
        digest, packed = archive(self.bundle)
        path = self.folder / f"{digest}.tar.gz"
        path.write_bytes(packed)
        self._archive = {"digest": digest, "archive": str(path)}

    def request(
        self,
        name: str,
        partitions: Sequence[Any] = ("",),
        *,
        upstream: Mapping[str, Sequence[str]] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Return the request of a run, as a worker sends the request."""
        producer, run_id = self._producers[name], next(_run_ids)
        outlets = [
            {"name": outlet["name"], "uri": outlet["uri"], "connection": self._connection(outlet)}
            for outlet in producer["outlets"]
        ]
        return {
            "run_id": run_id,
            "attempt": 1,
            "attempt_name": "1-0123456789ab",
            "fence": 1,
            "trigger": "manual",
            "params": {},
            "logical_time": "2026-01-01T00:00:00+00:00",
            "bundle": self._archive,
            "file": producer["file"],
            "asset": outlets[0]["name"],
            "uri": outlets[0]["uri"],
            "outlets": outlets,
            "partition": producer["partition"],
            "partitions": list(partitions),
            "strategy": producer["strategy"],
            "upstreams": {up: self._upstream(up, keys) for up, keys in (upstream or {}).items()},
            "spark": self._spark(run_id, producer["spark_conf"]),
            "log_limit": 10_000_000,
            # Tests that send no ping take longer than its default where the machine is busy.
            "watchdog": 120.0,
            "clock": clock_ahead_by(timedelta()),
            **more,
        }

    def launch(self, name: str, *args: Any, **more: Any) -> RunnerProcess:
        """Launch a runner."""
        return self.parent.launch(self.request(name, *args, **more))

    def run(self, name: str, *args: Any, **more: Any) -> Outcome:
        """Run to the end."""
        outcome = Outcome(self.request(name, *args, **more))
        runner = self.parent.launch(outcome.request)
        for message in runner.messages(0.5):
            runner.ping()
            outcome.messages.append(message)
            if message["type"] == "ask" and self.answer is not None:
                runner.answer(self.answer(message))
        return outcome

    def make(self, name: str, *args: Any, **more: Any) -> Outcome:
        """Run to success, and publish."""
        outcome = self.run(name, *args, **more)
        assert outcome.types[-2:] == ["finished", "exited"], outcome.messages
        request = outcome.request
        for staged in outcome.of_type("staged"):
            mode = self._producers[name]["write_mode"]
            connection = self._connection({"canonical_uri": staged["root"]})
            location = StorageLocation(uri=staged["root"], write_mode=mode, connection=connection)
            writer = Writer(
                run_id=request["run_id"], attempt=request["attempt_name"], fence=request["fence"]
            )
            storage_at(location).publish(staged["staging"], staged["partitions"], writer)
        return outcome

    def _upstream(self, name: str, keys: Sequence[str]) -> dict[str, Any]:
        outlet = self._outlets[name]
        facts = {fact: outlet[fact] for fact in ("uri", "format", "columns", "partition")}
        producer = self._producers.get(name)
        facts["partition"] = producer["partition"] if producer else facts["partition"]
        connection = self._connection(outlet)
        return {**facts, "partitions": list(keys), "missing": [], "connection": connection}

    def _connection(self, outlet: Mapping[str, Any]) -> Mapping[str, Any]:
        uri = outlet["canonical_uri"] or ""
        matches = [
            facts for location, facts in self.connections.items() if uri.startswith(location)
        ]
        return matches[0] if matches else {}

    def _spark(self, run_id: int, conf: Mapping[str, str]) -> dict[str, Any] | None:
        tag = f"slicewise-run-{run_id}-1"
        if self.submit is not None:
            folder = str(self.folder / "submitted" / str(run_id))
            conf = {**self.submit["conf"], **conf}
            return {**self.submit, "conf": conf, "name": tag, "tag": tag, "folder": folder}
        if self.remote is None:
            return None
        return {"remote": self.remote, "session_id": str(uuid.uuid4()), "tag": tag}


def unmade_errors(outcome: Outcome) -> dict[str, str]:
    pages = outcome.of_type("unmade")
    return {
        partition["key"]: partition["error"] for page in pages for partition in page["partitions"]
    }
