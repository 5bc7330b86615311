"""A busy catalogue: a week of work on the flights of 2013, and an airport of the present."""

from datetime import timedelta

from axes.models import AccessAttempt, AccessLog
from django.contrib.auth.models import Group
from django.utils import timezone
from knox.models import AuthToken

from accounts_app.models import Grant, User
from accounts_app.policy import Role
from assets_app.models import Asset, Gateway
from tests.factories import person
from tests.gateways import record_gateway
from tests.pages.page_list import Things
from tests.shots.airport_records import record_airport
from tests.shots.flights_records import record_flights
from tests.shots.heartbeats import SILENT, keep_alive
from tests.shots.played_runs import request


def fill(user: User) -> Things:
    """Fill the catalogue, whose bundles are loaded; return the things that addresses name."""
    ada = person("ada", Role.EDITOR, email="ada@example.org", first_name="Ada")
    _record_people(user)
    scheduled, bulk = _record_workers()
    flights = record_flights(user, ada, scheduled, bulk)
    airport = record_airport(user, scheduled)
    request("daily_delays", "2013-12-01..2013-12-04", ada)
    keep_alive()
    hour = timezone.now() - timedelta(hours=20)
    return {
        "word": "delays", "user": ada.pk, "group": Group.objects.create(name="night shift").pk,
        "asset": "daily_delays", "asset_id": Asset.objects.get(name="daily_delays").pk,
        "day": "2013-03-01", "hourly_asset": "departures", "hour": f"{hour:%Y-%m-%d}",
        "product_asset": "delays_by_origin", "product_day": "2013-02-01",
        "scheduled_asset": "departures", "found_asset": "carrier_days",
        "external_asset": "fuel_prices", "whole_asset": "carriers", "selection": "2013-02",
        "materialized_key": "2013-02-12", "failed_key": "2013-03-10",
        "failed_run": airport.failed_run.pk, "running_run": flights.running_run.pk,
        "backfill": flights.running_backfill.pk, "ended_backfill": flights.ended_backfill.pk,
        "backfill_fields": "asset=raw_flights&start=2013-10-25&end=2013-11-20&downstream=all",
        "channel": airport.channel, "alert_rule": airport.alert_rule,
    }  # fmt: skip


def _record_workers() -> tuple[Gateway, Gateway]:
    scheduled = record_gateway("host-1.scheduled")
    bulk = record_gateway("host-1.backfill", queue="backfill")
    record_gateway("host-2.scheduled", draining=True)
    record_gateway(SILENT, silent_seconds=900)
    days = timezone.now() - timedelta(days=9)
    Gateway.objects.update(started_at=days)
    return scheduled, bulk


def _record_people(user: User) -> None:
    ben = person("ben", Role.VIEWER, email="ben@example.org")
    Grant.objects.create(person=ben, asset="daily_delays")
    for holder in (user, user, ben):
        AuthToken.objects.create(user=holder)
    facts = {"username": "ben", "ip_address": "10.0.0.17", "user_agent": "Firefox"}
    AccessAttempt.objects.create(
        **facts, failures_since_start=3, get_data="", post_data="", path_info="/sign-in/"
    )
    AccessLog.objects.create(**facts, path_info="/sign-in/")
