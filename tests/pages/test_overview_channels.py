"""Failing alert channels on the overview."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts_app.models import User
from slicewise_server.alerts import failing_channels
from slicewise_server.alerts.models import Channel, Delivery, DeliveryState
from tests.clients import browser_of
from tests.factories import person
from tests.gateways import record_gateway_of_each_queue
from tests.pages.markup import page_at
from tests.query_plans import rows_read

pytestmark = pytest.mark.django_db


def attention(browser: Client) -> str:
    """Return the section of the overview about problems that need a person."""
    section = page_at(browser, "/").split("Needs attention</h2>")[1].split("</section>")[0]
    return " ".join(section.split())


def failing(name: str, **values: object) -> Channel:
    """Create a channel whose last try has failed."""
    error = "Status 500 of https://ann:s3cret@hooks.example/"
    fields = {"kind": "webhook", "failures": 3, "error": error} | values
    return Channel.objects.create(name=name, **fields)


def message(channel: Channel, state: DeliveryState, minutes: int) -> None:
    """Create a message to a channel, so many minutes ago."""
    now = timezone.now()
    Delivery.objects.create(
        channel=channel,
        state=state,
        body={"title": "t"},
        created_at=now - timedelta(minutes=minutes),
        send_at=now,
        give_up_at=now + timedelta(days=1),
    )


def test_a_failing_channel_needs_attention_with_its_waiting_messages(db: None) -> None:
    record_gateway_of_each_queue()
    viewer: User = person("vincent")
    browser = browser_of(viewer)
    assert "no failing alert channels" in attention(browser)
    channel = failing("incidents")
    shown = attention(browser)
    assert "Failing alert channel" in shown
    assert "wait" not in shown
    message(channel, DeliveryState.DELIVERED, 40)
    message(channel, DeliveryState.WAITING, 15)
    shown = attention(browser)
    assert "1 message waits since <time" in shown
    message(channel, DeliveryState.WAITING, 25)
    shown = attention(browser)
    assert 'href="/alerts/"' in shown
    oldest = Delivery.objects.latest("pk").created_at
    assert f'2 messages wait, the oldest since <time datetime="{oldest:%Y-%m-%dT%H:%M:%S}' in shown
    assert "Status 500" in shown
    assert "s3cret" not in shown


def test_paused_and_mended_channels_need_no_attention(browser: Client) -> None:
    record_gateway_of_each_queue()
    failing("paused", active=False)
    failing("mended", failures=0)
    assert "All clear" in attention(browser)


def test_further_failing_channels_are_behind_a_link(browser: Client) -> None:
    for number in range(11):
        failing(f"channel_{number:02}")
    shown = attention(browser)
    assert shown.count("Failing alert channel </a>") == 10
    assert "More failing alert channels" in shown


def test_waiting_messages_are_counted_up_to_a_limit(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_gateway_of_each_queue()
    monkeypatch.setattr(failing_channels, "MOST_COUNTED", 2)
    channel = failing("incidents")
    for minutes in (15, 25):
        message(channel, DeliveryState.WAITING, minutes)
    assert "2 messages wait, the oldest since <time" in attention(browser)
    message(channel, DeliveryState.WAITING, 35)
    assert "more than 2 messages wait, some since <time" in attention(browser)


def test_a_bounded_number_of_waiting_messages_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failing_channels, "MOST_COUNTED", 5)
    now = timezone.now()
    for channel in (failing("a"), failing("b")):
        Delivery.objects.bulk_create(
            Delivery(
                channel=channel,
                state=state,
                body={"title": "t"},
                send_at=now + timedelta(seconds=second),
                give_up_at=now + timedelta(days=1),
            )
            for state in (DeliveryState.WAITING, DeliveryState.DELIVERED)
            for second in range(500)
        )
    with CaptureQueriesContext(connection) as statements:
        channels = failing_channels.failing_channels(1)
    assert [(row.name, row.waiting_count, row.more_waiting) for row in channels] == [("a", 5, True)]
    (statement,) = statements.captured_queries
    # The two channels, and the messages of the first channel up to the limit.
    assert rows_read(statement["sql"]) <= 2 + 6
