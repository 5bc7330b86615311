"""The assets of the present: two days of schedules, with failures, lateness, alerts and lineage."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import uuid4

from django.db.models import F
from django.utils import timezone

from accounts_app.models import User
from assets_app.catalogue.pausing import set_paused
from assets_app.execution.attempt.ending import Failure
from assets_app.models import (
    Asset,
    AttemptStep,
    FreshnessWatch,
    Gateway,
    Run,
    RunAttempt,
    RunLog,
    RunState,
    Schedule,
    ValidationResult,
)
from assets_app.scheduling.freshness import watch_freshness
from slicewise import openlineage_name
from slicewise_server.alerts import services as alerts
from slicewise_server.alerts.delivering import pause_after
from slicewise_server.alerts.matching import match_events
from slicewise_server.alerts.models import Channel, Delivery
from slicewise_server.events.feed import publish_events
from slicewise_server.lineage.models import LineageEvent
from slicewise_server.lineage.received_runs import ReceivedDataset, ReceivedRun
from slicewise_server.lineage.receiving import receive
from tests.scheduling.beats import look
from tests.scheduling.scheduled_assets import begin
from tests.shots.played_runs import Moment, date, fail, make, request, succeed

_HOURS = 48
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
_NULLS = (
    "ValidationError: not_null('flight', 'expected_delay') failed for delay_forecast: 14 of 912"
    " rows have a null in 'expected_delay'."
)
_TRACEBACK = """\
Traceback (most recent call last):
  File "airport.py", line 65, in delay_forecast
    return model_server.predict(departures.read(), context["params"])
slicewise.validations.ValidationError: not_null('flight', 'expected_delay') failed
"""
_FAILURE = Failure(error=_NULLS, traceback=_TRACEBACK)
_TOWER = Failure(
    error="ConnectionError: tower.example.org:443 does not answer: timed out after 30 s"
)


class AirportRecords(NamedTuple):
    """The records of the airport that addresses of pages name."""

    failed_run: Run
    channel: str
    alert_rule: str


def record_airport(user: User, gateway: Gateway) -> AirportRecords:
    """Let two days pass, hour by hour."""
    rule = _make_alerts(user)
    _receive_fuel_prices(user)
    now = timezone.now()
    since = now - _HOURS * HOUR
    Schedule.objects.exclude(next_at=None).update(
        handled_until=since, began_at=since, next_at=since
    )
    make(request("airports", "", user), gateway, Moment(ago=30 * HOUR, took=9 * SECOND))
    for hours in range(_HOURS, -1, -1):
        _pass_hour(now - hours * HOUR, gateway, is_last=hours == 0)
    failed = Run.objects.filter(asset__name="delay_forecast", state=RunState.FAILED).order_by("-id")
    set_paused(Asset.objects.get(name="gate_changes"), True, user=user)
    _make_overdue(now)
    _make_late(now)
    _send_alerts(now)
    sent = LineageEvent.objects.order_by("-id").values_list("pk", flat=True)[4:]
    LineageEvent.objects.filter(pk__in=list(sent)).update(sent_at=now)
    return AirportRecords(failed[0], "oncall", rule)


def _pass_hour(moment: datetime, gateway: Gateway, *, is_last: bool) -> None:
    """Queue the runs of an hour and play them; the runs of the last hour stay queued or running."""
    look(moment)
    queued = Run.objects.filter(state=RunState.QUEUED, trigger__in=("schedule", "upstream"))
    ago = timezone.now() - moment
    for place, run in enumerate(queued.order_by("id")):
        if is_last and place:
            continue
        _play(
            run, gateway, Moment(ago=ago - place * MINUTE, took=(20 + 7 * place) * SECOND), is_last
        )
    if not is_last:
        look(moment + MINUTE)


def _play(run: Run, gateway: Gateway, moment: Moment, is_last: bool) -> None:
    if run.asset.name == "delay_forecast":
        _fail_forecast(run, gateway, moment)
    elif is_last:
        begin(run, gateway)
        date(run, Moment(ago=timedelta(0), took=moment.took))
    elif run.asset.name == "departures" and run.pk % 9 == 0:
        _fail_all(run, gateway, _TOWER, moment)
    else:
        succeed(begin(run, gateway))
        date(run, moment)


def _fail_all(run: Run, gateway: Gateway, failure: Failure, moment: Moment) -> None:
    """Fail a run at each of its attempts."""
    for _ in range(3):
        Run.objects.filter(pk=run.pk).update(not_before=None)
        fail(begin(run, gateway), failure)
    date(run, moment)
    _space_attempts(run, moment.took + MINUTE)


def _space_attempts(run: Run, pause: timedelta) -> None:
    """Move the earlier attempts of a run back, each so long before the next."""
    last = run.attempts.count()
    for attempt in run.attempts.exclude(number=last):
        earlier = (last - attempt.number) * pause
        RunAttempt.objects.filter(pk=attempt.pk).update(
            started_at=F("started_at") - earlier, ended_at=F("ended_at") - earlier
        )
        RunLog.objects.filter(attempt=attempt).update(at=F("at") - earlier)
    asked = F("created_at") - (last - 1) * pause
    Run.objects.filter(pk=run.pk).update(created_at=asked, queued_at=asked)


def _fail_forecast(run: Run, gateway: Gateway, moment: Moment) -> None:
    """Fail a run whose steps and validations are on record, at each attempt."""
    _fail_all(run, gateway, _FAILURE, moment)
    for attempt in run.attempts.all():
        _record_forecast(attempt, run.asset)


def _record_forecast(attempt: RunAttempt, forecast: Asset) -> None:
    """Record the steps and the validations of an attempt at the forecast."""
    started = attempt.started_at
    for place, (kind, name, state, error) in enumerate((
        ("setup", "model_server", "succeeded", ""),
        ("function", "delay_forecast", "failed", _NULLS),
        ("teardown", "stop_model_server", "succeeded", ""),
    )):  # fmt: skip
        AttemptStep.objects.update_or_create(
            attempt=attempt, position=place,
            defaults={
                "kind": kind, "name": name, "state": state, "error": error,
                "started_at": started + place * 6 * SECOND,
                "ended_at": started + (place + 1) * 6 * SECOND,
            },
        )  # fmt: skip
    prices = Asset.objects.get(name="fuel_prices")
    for place, (of, when, name, passed, message) in enumerate((
        (prices, "inlet", "row_count(min=1)", True, "24 rows"),
        (forecast, "outlet", "row_count(min=1)", True, "912 rows"),
        (forecast, "outlet", "not_null('flight', 'expected_delay')", False,
         "14 of 912 rows have a null in 'expected_delay'."),
    )):  # fmt: skip
        ValidationResult.objects.create(
            attempt=attempt, position=place, asset=of, when=when, name=name, severity="error",
            passed=passed, evaluated=True, message=message,
            description="No row has a null in these columns." if "null" in name else "",
        )  # fmt: skip


def _make_overdue(now: datetime) -> None:
    """Let the watch of the fuel prices begin some days ago; the last days were not reported."""
    FreshnessWatch.objects.update(watched_until=now - 96 * HOUR, next_at=now - 96 * HOUR)
    watch_freshness(now)


def _make_late(now: datetime) -> None:
    """Let the last tick of a schedule, at minute 5, be overdue, as if the beat had failed."""
    tick = now.replace(minute=5, second=0, microsecond=0)
    # The clock may show less than five minutes, or too few for a tick that is overdue.
    late_tick = tick if tick < now - 15 * MINUTE else tick - HOUR
    Schedule.objects.filter(producer__name="departures").update(next_at=late_tick)


def _receive_fuel_prices(user: User) -> None:
    """Receive the events of another tool, which writes an asset and reads others."""
    day = f"{timezone.now() - 72 * HOUR:%Y-%m-%d}"
    named = {"slicewise_partitions": {"selection": day}}
    prices = openlineage_name(Asset.objects.get(name="fuel_prices").uri)
    report = openlineage_name(Asset.objects.get(name="monthly_report").uri)
    for outputs, inputs, job in (
        ([_dataset(*prices, named)],
         [_dataset("kafka://broker:9092", "fuel.quotes")], "import_fuel_prices"),
        ([_dataset(*prices)], [], "correct_fuel_prices"),
        ([_dataset("tableau://bi", "Punctuality")], [_dataset(*report)], "refresh_extracts"),
    ):  # fmt: skip
        run = ReceivedRun(
            event_type="COMPLETE", run_id=uuid4(), job_namespace="airflow", job_name=job,
            producer="https://github.com/apache/airflow", inputs=inputs, outputs=outputs,
            event_time=timezone.now() - 71 * HOUR,
        )  # fmt: skip
        receive([run], user=user)


def _dataset(
    namespace: str, name: str, facets: Mapping[str, Any] = MappingProxyType({})
) -> ReceivedDataset:
    return ReceivedDataset(namespace=namespace, name=name, facets=facets)


def _make_alerts(user: User) -> str:
    """Create two channels and a rule; return the name of the rule."""
    hook, _ = alerts.create_channel(
        "oncall", "webhook", address="https://hooks.example.org/T02/s3cret", user=user
    )
    address = "mailto://mail.example.org?from=slicewise@example.org&to=data@example.org"
    mail, _ = alerts.create_channel("data team", "message", address=address, user=user)
    fields = {"name": "failures of reports", "channel": mail, "groups": ["reports"]}
    alerts.save_rule(None, fields, user=user)
    alerts.send_test(hook, user=user)
    return str(fields["name"])


def _send_alerts(now: datetime) -> None:
    """Write deliveries, and answer them as two receivers would: one fails at the last messages."""
    publish_events(now)
    match_events(now)
    match_events(now + 2 * HOUR)
    Delivery.objects.update(state="delivered", status=200, answer="", tries=1, delivered_at=now)
    newest = Delivery.objects.order_by("-id").values_list("pk", flat=True)[:2]
    answer = "The receiver answered with status 503."
    given_up = Delivery.objects.filter(pk__in=list(newest))
    given_up.update(state="failed", status=503, answer=answer, tries=11, delivered_at=None)
    for failing in Channel.objects.filter(pk__in=given_up.values("channel")):
        failing.failures, failing.error = 22, answer
        failing.retry_at = now + pause_after(failing.failures)
        failing.save()
