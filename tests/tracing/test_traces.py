"""A run is one trace, from its tick to its record, in a receiver of OTLP over HTTP."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from assets_app.catalogue.services import sync_bundle
from assets_app.execution.gateway import conclusion, publishing, recovery, supervision
from assets_app.execution.queue.dispatch import dispatch
from assets_app.models import Gateway, Run, RunAttempt, RunLog, RunState, Schedule
from assets_app.queries.clock import database_now
from assets_app.scheduling.ticking import handle_ticks
from assets_app.signals import attempt_closed, attempt_opened, phase_ended, runner_starting
from slicewise_server.tracing import receivers
from slicewise_server.tracing.ids import RunTrace
from slicewise_server.tracing.variables import names_service, wants_traces
from slicewise_server.web.log_context import current_facts
from tests.catalogue.conftest import Bundle
from tests.execution.conftest import lose_the_worker
from tests.factories import asset
from tests.runtime_keys import CUSTOMERS, discover
from tests.supervised_runs import Worker
from tests.tracing.conftest import Receiver
from tests.tracing.received_spans import ReceivedSpan

pytestmark = pytest.mark.django_db(transaction=True)

CODE = """
import os
from slicewise import asset

@asset(schedule="@hourly", retries=1, retry_delay=0)
def hourly(context):
    print(os.environ.get("TRACEPARENT"))
    if context["attempt"] == {failing}:
        raise ValueError("no")
"""
OK, ERROR = 1, 2


def tick_and_execute(bundle: Bundle, *, failing: int = 0) -> Run:
    """Sync an hourly asset, let its tick come, and execute all attempts at its run."""
    sync_bundle("traced", bundle(hourly=CODE.replace("{failing}", str(failing))))
    now = database_now()
    Schedule.objects.update(
        next_at=now - timedelta(minutes=1), handled_until=now - timedelta(hours=1)
    )
    assert handle_ticks(now) == 1
    run = Run.objects.get()
    for _ in range(2):
        Run.objects.update(not_before=None)
        dispatch()
        supervision.execute(run.pk)
    run.refresh_from_db()
    return run


def by_name(spans: list[ReceivedSpan]) -> dict[str, ReceivedSpan]:
    named = {span.name: span for span in spans}
    assert len(named) == len(spans), [span.name for span in spans]
    return named


def test_a_run_is_one_trace_from_tick_to_record(
    worker: Worker, bundle: Bundle, traced: Receiver
) -> None:
    run = tick_and_execute(bundle)
    assert run.state == RunState.SUCCEEDED, run.error
    spans = by_name(traced.spans)
    assert traced.types == {"application/x-protobuf"}
    root, attempt = spans["run hourly"], spans["attempt 1"]
    assert {span.trace for span in spans.values()} == {root.trace}
    assert {name: span.parent for name, span in spans.items()} == {
        "run hourly": "",
        **dict.fromkeys(("tick", "queue", "dispatch", "attempt 1"), root.span),
        **dict.fromkeys(("prepare", "runner", "publish", "record"), attempt.span),
    }
    order = ("tick", "queue", "dispatch", "prepare", "runner", "publish", "record")
    begins = [spans[name].began for name in order]
    assert begins == sorted(begins)
    assert all(span.began <= span.ended for span in spans.values())
    assert spans["tick"].began % 3_600_000_000_000 == 0, "the tick of an hour"
    assert root.began == spans["tick"].began
    assert root.status == attempt.status == OK
    assert root.resource["service.name"] == "slicewise"
    assert root.attributes["slicewise.run"] == run.pk
    assert root.attributes["slicewise.trigger"] == "schedule"
    assert attempt.attributes["slicewise.gateway"] == worker.gateway.name


@pytest.mark.usefixtures("traced")
def test_the_spans_of_ended_attempts_take_no_statement(worker: Worker, bundle: Bundle) -> None:
    statements = []

    def count(**facts: Any) -> None:
        with CaptureQueriesContext(connection) as captured:
            receivers.receive_ended(**facts)
        statements.append(len(captured))

    attempt_closed.connect(count)
    try:
        tick_and_execute(bundle, failing=1)
    finally:
        attempt_closed.disconnect(count)
    assert statements == [0, 0]


def test_the_span_of_a_run_that_discovers_has_the_partitions_of_its_end(
    alice: User, gateway: Gateway, traced: Receiver
) -> None:
    models = asset("models", CUSTOMERS)
    run = discover(models, alice, gateway, "acme", "globex", written=["acme"])
    root = by_name(traced.spans)["run models"]
    assert root.attributes["slicewise.partitions"] == run.partition_count == 2
    assert root.attributes["slicewise.selection"] == run.selection


def test_user_code_gets_the_parent_of_its_spans(
    worker: Worker, bundle: Bundle, traced: Receiver
) -> None:
    tick_and_execute(bundle)
    runner = by_name(traced.spans)["runner"]
    printed = "".join(RunLog.objects.values_list("text", flat=True)).strip()
    assert printed == f"00-{runner.trace}-{runner.span}-01"


def test_a_retry_is_another_attempt_of_the_same_trace(
    worker: Worker, bundle: Bundle, traced: Receiver
) -> None:
    run = tick_and_execute(bundle, failing=1)
    assert (run.state, run.attempt_count) == (RunState.SUCCEEDED, 2)
    spans = traced.spans
    assert len({span.trace for span in spans}) == 1
    assert len({span.span for span in spans}) == len(spans)
    [first] = [span for span in spans if span.name == "attempt 1"]
    [second] = [span for span in spans if span.name == "attempt 2"]
    [root] = [span for span in spans if not span.parent]
    assert (first.status, second.status, root.status) == (ERROR, OK, OK)
    assert first.message == "ValueError: no"
    runners = [span.parent for span in spans if span.name == "runner"]
    assert runners == [first.span, second.span]
    assert sum(span.name == "queue" for span in spans) == 2
    assert sum(span.name == "tick" for span in spans) == 1


def test_the_end_of_a_lost_attempt_is_in_the_trace(
    worker: Worker, bundle: Bundle, traced: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(supervision, "_run_attempt", lambda *_: None)
        tick_and_execute(bundle)
    assert RunAttempt.objects.get().ended_at is None
    monkeypatch.setattr(recovery, "DOUBT_SECONDS", 0.0)
    lose_the_worker()
    recovery.recover()
    spans = by_name(traced.spans)
    assert spans["attempt 1"].status == ERROR
    assert "run hourly" not in spans


def test_a_sampler_that_drops_the_trace_drops_all_of_it(
    worker: Worker, bundle: Bundle, traced: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    tick_and_execute(bundle)
    assert traced.spans == []
    assert "".join(RunLog.objects.values_list("text", flat=True)).strip() == "None"


def test_a_receiver_that_is_away_delays_no_run(
    worker: Worker, bundle: Bundle, traced: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")
    assert tick_and_execute(bundle).state == RunState.SUCCEEDED


def test_without_variables_nothing_listens(worker: Worker, bundle: Bundle) -> None:
    for signal in (runner_starting, phase_ended, attempt_closed):
        assert not signal.has_listeners(), signal
    # The backfill of a run, for log lines, is all that an attempt asks for.
    assert len(attempt_opened.receivers) == 1
    tick_and_execute(bundle)
    assert "".join(RunLog.objects.values_list("text", flat=True)).strip() == "None"


def test_log_lines_of_a_run_name_the_run_and_the_trace(
    worker: Worker, bundle: Bundle, traced: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []
    publish = publishing.publish

    def note(*arguments: Any) -> None:
        seen.append(dict(current_facts()))
        publish(*arguments)

    monkeypatch.setattr(conclusion, "publish", note)
    run = tick_and_execute(bundle)
    [facts] = seen
    trace = f"{RunTrace.of(run).trace_id:032x}"
    assert facts == {"run": run.pk, "attempt": 1, "asset": "hourly", "trace_id": trace}
    assert current_facts() == {}


@pytest.mark.parametrize(
    ("variables", "wants"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://localhost:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_SDK_DISABLED": "false", "OTEL_TRACES_EXPORTER": "OTLP"}, True),
    ],
)
def test_the_variables_of_opentelemetry_decide(variables: dict[str, str], wants: bool) -> None:
    assert wants_traces(variables) is wants


def test_the_service_has_the_name_of_the_variables() -> None:
    assert names_service({"OTEL_SERVICE_NAME": "x"})
    assert names_service({"OTEL_RESOURCE_ATTRIBUTES": "a=b, service.name=x"})
    assert not names_service({"OTEL_RESOURCE_ATTRIBUTES": "a=b"})


START = """
import logging, sys
import django
django.setup()
from assets_app.signals import phase_ended
print(phase_ended.has_listeners(), any(name.startswith("opentelemetry") for name in sys.modules))
"""


@pytest.mark.parametrize(
    ("endpoint", "without", "answer"),
    [("", "", "False False"), ("http://127.0.0.1:9", "", "True True"),
     ("http://127.0.0.1:9", "sys.modules['opentelemetry'] = None", "False")],
)  # fmt: skip
def test_a_process_imports_opentelemetry_for_a_receiver_alone(
    endpoint: str, without: str, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "slicewise_server.settings")
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"import sys\n{without}\n{START}"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert process.stdout.startswith(answer)
    assert ("pip install -e '.[otel]'" in process.stderr) is bool(without)
