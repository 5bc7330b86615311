"""Requests for backfills: valid forms, the resulting partitions, and the sentences of refusals."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.utils import timezone

import slicewise
from accounts_app.models import User
from accounts_app.policy import Role
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import BundleVersion, Producer, ProducerVersion
from backfills_app.models import Backfill
from backfills_app.services import check_backfill, request_from_text
from backfills_app.services.advance.advancing import advance
from slicewise_server.web.request_errors import InvalidRequest
from tests.attempts import begun, publish
from tests.backfills.driven_backfills import refusal_of
from tests.created_backfills import create_backfill
from tests.factories import AIRPORTS, DAILY_2013, DAY_BY_AIRPORT, asset, person


def refusal(alice: User, name: str, start: Any, end: Any, **more: Any) -> dict[str, list[str]]:
    """Return the errors with which the request is refused, at the preview as at the creation."""
    return refusal_of(alice, asset=name, start=start, end=end, **more)


def test_the_plan_says_what_the_request_comes_to(alice: User) -> None:
    asset("weather", DAY_BY_AIRPORT)
    plan = check_backfill(
        request_from_text("weather", "2013-02-01", "2013-02-28", strategy=30), user=alice
    )
    assert (plan.total, plan.to_materialize, plan.runs) == (84, 84, 3)
    assert (plan.first_key, plan.last_key) == ("2013-02-01", "2013-02-28")
    assert (plan.end_date - plan.start_date).days == 28


def test_the_plan_counts_materialized_partitions_and_those_in_flight(
    alice: User, gateway: Any
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    publish(begun(flights, alice, gateway, "2013-01-01..2013-01-03", strategy="range"))
    materialize(MaterializeRequest(asset=flights, selection="2013-01-04"), user=alice)
    plan = check_backfill(request_from_text("raw_flights", "2013-01-01", "2013-01-10"), user=alice)
    assert (plan.total, plan.materialized, plan.in_flight, plan.to_materialize) == (10, 3, 1, 6)
    again = request_from_text("raw_flights", "2013-01-01", "2013-01-10", existing="all")
    assert check_backfill(again, user=alice).to_materialize == 9


def test_a_month_or_a_year_names_its_first_and_last_partition(alice: User) -> None:
    asset("raw_flights", DAILY_2013)
    plan = check_backfill(request_from_text("raw_flights", "2013-02", "2013-03"), user=alice)
    assert (plan.first_key, plan.last_key, plan.total) == ("2013-02-01", "2013-03-31", 59)
    assert check_backfill(request_from_text("raw_flights", "2013", "2013"), user=alice).total == 365


def test_an_unknown_asset_is_refused(alice: User) -> None:
    assert refusal(alice, "raw_fligths", "2013-01-01", "2013-01-02") == {
        "asset": ["There is no asset 'raw_fligths'."]
    }


@pytest.mark.parametrize(
    ("start", "end", "field", "message"),
    [
        ("2013-02-01", "2013-01-01", "end", "before the first"),
        ("2012-01-01", "2013-01-01", "start", "2012-01-01"),
        ("2013-01-01", "2014-06-01", "end", "2014-06-01"),
        ("not a date", "2013-01-01", "start", "not a date"),
        ("", "2013-01-01", "start", "Name a partition"),
        ("2013-02-30", "2013-03-01", "start", "2013-02-30"),
        (20130101, "2013-03-01", "start", "not text"),
        ("2013-01-01|EWR", "2013-03-01", "start", "EWR"),
    ],
)
def test_a_range_that_is_none_is_refused(
    alice: User, start: Any, end: Any, field: str, message: str
) -> None:
    asset("raw_flights", DAILY_2013)
    errors = refusal(alice, "raw_flights", start, end)
    assert list(errors) == [field]
    assert message in errors[field][0]


@pytest.mark.usefixtures("same_day")
def test_the_future_is_refused(alice: User) -> None:
    asset("events", slicewise.PartitionByInterval("@daily", start="2020-01-01"))
    tomorrow = (timezone.now() + timedelta(days=1)).date()
    errors = refusal(alice, "events", "2020-01-01", str(tomorrow))
    assert "Only the past can be backfilled" in errors["end"][0]


def test_an_asset_without_time_is_to_be_materialized_instead(alice: User) -> None:
    asset("spend", AIRPORTS)
    asset("carriers")
    for name in ("spend", "carriers"):
        assert "materialize it instead" in refusal(alice, name, "2013", "2013")["asset"][0]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_active_runs", 0),
        ("max_active_runs", -3),
        ("max_active_runs", "many"),
        ("max_active_runs", True),
        ("max_active_runs", 10**9),
        ("strategy", "sideways"),
        ("strategy", 0),
        ("existing", "none"),
        ("description", "x" * 1001),
        ("params", {"unknown": 1}),
        ("params", [1]),
    ],
)
def test_a_field_that_is_wrong_is_named(alice: User, field: str, value: Any) -> None:
    asset("raw_flights", DAILY_2013)
    errors = refusal(alice, "raw_flights", "2013-01-01", "2013-01-02", **{field: value})
    assert list(errors) == [field]


def test_all_that_is_wrong_is_said_at_once(alice: User) -> None:
    asset("raw_flights", DAILY_2013)
    errors = refusal(alice, "raw_flights", "yesterday", "2014-06-01", max_active_runs=0)
    assert sorted(errors) == ["end", "max_active_runs", "start"]


def test_more_partitions_than_the_limit_are_refused_by_its_name(alice: User, settings: Any) -> None:
    settings.MAX_PARTITIONS_PER_BACKFILL = 100
    asset("raw_flights", DAILY_2013)
    errors = refusal(alice, "raw_flights", "2013", "2013")
    assert "MAX_PARTITIONS_PER_BACKFILL" in errors["end"][0]


def test_who_may_only_look_is_refused(db: None) -> None:
    asset("raw_flights", DAILY_2013)
    request = request_from_text("raw_flights", "2013-01-01", "2013-01-02")
    with pytest.raises(PermissionDenied, match="operator"):
        create_backfill(request, user=person("vera", Role.VIEWER))
    assert not Backfill.objects.exists()


def test_a_selection_may_name_segments_and_have_holes(alice: User) -> None:
    asset("weather", DAY_BY_AIRPORT)
    request = request_from_text(
        "weather", selection="date=2013-01-01..2013-01-03,2013-02 airport=*K"
    )
    plan = check_backfill(request, user=alice)
    assert plan.selection == "date=2013-01-01..2013-01-03,2013-02-01..2013-02-28 airport=JFK"
    assert (plan.total, plan.runs) == (31, 31)


@pytest.mark.usefixtures("same_day")
def test_of_a_selection_partitions_that_have_not_ended_are_skipped_and_counted(alice: User) -> None:
    asset("events", slicewise.PartitionByInterval("@daily", start="2020-01-01"))
    today = timezone.now().date()
    selection = f"{today - timedelta(days=2)}..{today + timedelta(days=3)}"
    plan = check_backfill(request_from_text("events", selection=selection), user=alice)
    assert (plan.total, plan.first_chosen.not_ended) == (2, 4)
    later = f"{today + timedelta(days=1)}..{today + timedelta(days=3)}"
    with pytest.raises(InvalidRequest, match="Only the past"):
        check_backfill(request_from_text("events", selection=later), user=alice)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"selection": "*"}, "give a period"),
        ({"selection": "2013-01", "start": "2013-01-01"}, "not both"),
        ({"selection": "2013-13"}, "2013-13"),
    ],
)
def test_a_selection_that_is_none_is_refused(
    alice: User, more: dict[str, Any], message: str
) -> None:
    asset("events", slicewise.PartitionByInterval("@daily", start="2010-01-01"))
    with pytest.raises(InvalidRequest, match=message) as refused:
        check_backfill(request_from_text("events", **more), user=alice)
    assert list(refused.value.errors) == ["selection"]


def test_a_time_to_start_is_read_in_the_zone_of_the_asset(alice: User) -> None:
    zone = "America/New_York"
    asset("events", slicewise.PartitionByInterval("@daily", start="2020-01-01", timezone=zone))

    def read(text: str) -> Any:
        return request_from_text("events", "2020-01-01", "2020-01-01", start_at=text).start_at

    assert f"{read('2030-07-01T06:00'):%H:%M}" == "10:00"
    assert f"{read('2030-07-01T06:00Z'):%H:%M}" == "06:00"
    with pytest.raises(InvalidRequest, match="not a time"):
        read("soon")


def test_nothing_starts_before_its_time(alice: User) -> None:
    asset("raw_flights", DAILY_2013)
    request = request_from_text("raw_flights", selection="2013-01", start_at="2100-01-01T00:00Z")
    backfill = create_backfill(request, user=alice)
    advance()
    backfill.refresh_from_db()
    assert (backfill.state, backfill.group.runs.count()) == ("scheduled", 0)
    Backfill.objects.update(scheduled_date=timezone.now())
    advance()
    assert backfill.group.runs.exists()


def test_an_older_version_of_the_code_is_used_where_it_is_named(alice: User) -> None:
    flights = asset("raw_flights", DAILY_2013)
    producer = Producer.objects.get(name="raw_flights")
    old = producer.current_version
    assert old is not None
    newer = BundleVersion.objects.create(bundle=flights.bundle, digest="1" * 64, archive=b"")
    now = ProducerVersion.objects.get(pk=old.pk)
    now.pk, now.bundle_version, now.digest = None, newer, "1" * 64
    now.save()
    producer.current_version = now
    producer.save()

    def frozen(text: str) -> Any:
        request = request_from_text("raw_flights", selection="2013-01", code_version=text)
        return check_backfill(request, user=alice).producer_version

    assert frozen("") == frozen("1111") == now
    assert frozen("000000") == frozen(str(old.bundle_version_id)) == old
    with pytest.raises(InvalidRequest, match="no version 'abcd'"):
        frozen("abcd")


def test_an_asset_that_depends_on_its_past_is_materialized_oldest_first(alice: User) -> None:
    asset("balances", DAILY_2013, options={"depends_on_past": True})
    errors = refusal(alice, "balances", "2013-01-01", "2013-01-03", order="newest")
    assert "order is oldest" in errors["order"][0]
    assert request_from_text("balances", "2013-01-01", "2013-01-03").order == "oldest"


@pytest.mark.usefixtures("same_day")
def test_a_range_that_ends_today_is_cut_and_says_so(alice: User) -> None:
    asset("events", slicewise.PartitionByInterval("@daily", start="2020-01-01"))
    asset("hours", slicewise.PartitionByInterval("@hourly", start="2020-01-01"))
    today = timezone.now().date()
    begin = str(today - timedelta(days=2))
    plan = check_backfill(request_from_text("events", begin, str(today)), user=alice)
    assert (plan.total, plan.first_chosen.not_ended) == (2, 1)
    plan = check_backfill(request_from_text("hours", begin, str(today)), user=alice)
    assert plan.total + plan.first_chosen.not_ended == 72
    assert plan.first_chosen.not_ended > 0
    assert "Only the past" in refusal(alice, "events", str(today), str(today))["end"][0]
