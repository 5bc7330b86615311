"""The page of alerts."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts_app.models import User
from accounts_app.policy import Role
from slicewise_server.alerts import services
from slicewise_server.alerts.matching import match_events
from slicewise_server.alerts.models import AlertRule, Channel, Delivery
from slicewise_server.alerts.shown_deliveries import MOST_COUNTED
from slicewise_server.events.feed import publish_events
from slicewise_server.events.models import Event
from tests.clients import browser_of
from tests.factories import person
from tests.pages.markup import compact, page_at, words_of

pytestmark = pytest.mark.django_db
ADDRESS = "https://hooks.example/T0/s3cret"


@pytest.fixture
def channel(admin: User) -> Channel:
    created, _ = services.create_channel("hook", "webhook", address=ADDRESS, user=admin)
    services.save_rule(None, {"name": "failures", "channel": created, "tags": ["prod"]}, user=admin)
    return created


def test_an_empty_page_says_how_to_begin(vera: User) -> None:
    text = browser_of(vera).get("/alerts/").content.decode()
    assert "An administrator creates channels" in text
    assert "Editors create rules here or in definition files" in text
    assert "/alerts/new-channel/" not in text


def test_a_person_who_may_create_channels_is_led_to_the_form(admin: User) -> None:
    browser = browser_of(admin)
    for address in ("/alerts/", "/alerts/new-rule/"):
        text = browser.get(address).content.decode()
        assert "An administrator creates channels" not in text
        assert '<a href="/alerts/new-channel/">Create a channel first</a>' in text
    editor = browser_of(person("ed", Role.EDITOR)).get("/alerts/new-rule/").content.decode()
    assert "An administrator creates channels" in editor
    assert "/alerts/new-channel/" not in editor


def test_rules_show_the_labels_of_their_events(channel: Channel, vera: User) -> None:
    AlertRule.objects.update(kinds=["run_failed", "worker_lost", "of_another_version"])
    text = browser_of(vera).get("/alerts/").content.decode()
    for label in ("Run failed", "Worker offline", "of_another_version"):
        assert f"<div>{label}</div>" in text
    assert "run_failed" not in text
    assert text.count("<table") == text.count("card-table as-cards") == 2


def test_channels_rules_and_deliveries_are_listed_without_secrets(
    channel: Channel, admin: User, vera: User
) -> None:
    services.send_test(channel, user=admin)
    Channel.objects.update(failures=1, error="Status 500")
    text = browser_of(vera).get("/alerts/").content.decode()
    for expected in ("hook", "failures", "Tags: prod", "Slicewise: test message", "Status 500"):
        assert expected in text
    assert "s3cret" not in text
    assert "Send test message" not in text


def test_a_delivery_shows_its_text_with_links_to_runs(
    channel: Channel, admin: User, vera: User
) -> None:
    services.send_test(channel, user=admin)
    text = "sales: 1 run failed: <b>no rows</b>\n  https://slicewise.example/runs/7/"
    Delivery.objects.update(body={"title": "Slicewise: 1 run failed", "text": text})
    page = browser_of(vera).get("/alerts/").content.decode()
    assert '<a href="https://slicewise.example/runs/7/"' in page
    assert "&lt;b&gt;no rows" in page


def test_an_unchanged_page_is_not_sent_again(channel: Channel, vera: User) -> None:
    browser = browser_of(vera)
    version = browser.get("/alerts/").context["version"]
    assert browser.get("/alerts/listed/", {"version": version}).status_code == 204
    Channel.objects.update(failures=1)
    assert browser.get("/alerts/listed/", {"version": version}).status_code == 200


def test_a_test_message_and_a_second_sending_by_page(channel: Channel, admin: User) -> None:
    browser = browser_of(admin)
    answer = browser.post("/alerts/channels/hook/test/", follow=True)
    assert "Test message to “hook” queued" in answer.content.decode()
    delivery = Delivery.objects.get()
    again = f"/alerts/deliveries/{delivery.key}/resend/"
    assert "still to be sent" in browser.post(again, follow=True).content.decode()
    Delivery.objects.update(state="failed")
    assert "queued again" in browser.post(again, follow=True).content.decode()
    assert Delivery.objects.get().state == "waiting"


def test_deliveries_are_narrowed_by_state(channel: Channel, admin: User) -> None:
    services.send_test(channel, user=admin)
    browser = browser_of(admin)
    assert "Slicewise: test message" in browser.get("/alerts/?state=waiting").content.decode()
    assert "No deliveries" in browser.get("/alerts/?state=failed").content.decode()


def test_a_waiting_delivery_shows_its_next_try_or_the_failing_channel(
    channel: Channel, admin: User
) -> None:
    tried, untried = (services.send_test(channel, user=admin) for _ in range(2))
    browser = browser_of(admin)
    text = browser.get("/alerts/").content.decode()
    assert "next try" not in text.lower()
    sent_at, retry_at = tried.send_at, tried.send_at + timedelta(seconds=40)
    Channel.objects.update(failures=3, retry_at=retry_at)
    Delivery.objects.filter(pk=tried.pk).update(tries=3, send_at=sent_at + timedelta(seconds=60))
    text = " ".join(browser.get("/alerts/").content.decode().split())
    tried_at = f"{sent_at + timedelta(seconds=60):%Y-%m-%d %H:%M:%S}"
    assert re.search(rf"> Next try <time [^>]*>{tried_at} UTC", text)
    waits = "> Waits for the failing channel, next try <time"
    assert re.search(rf"{waits} [^>]*>{retry_at:%Y-%m-%d %H:%M:%S} UTC", text)
    Channel.objects.update(active=False, failures=0, retry_at=None)
    text = " ".join(browser.get("/alerts/").content.decode().split())
    assert text.count("> Channel “hook” is paused <") == 2
    assert untried.tries == 0


def test_a_moved_try_is_a_change_of_the_page(channel: Channel, admin: User) -> None:
    services.send_test(channel, user=admin)
    browser = browser_of(admin)
    version = browser.get("/alerts/").context["version"]
    Channel.objects.update(retry_at=Delivery.objects.get().send_at + timedelta(seconds=9))
    assert browser.get("/alerts/").context["version"] != version


def failed_runs(*keys: str) -> None:
    """Let runs of sales fail, one for each partition, and match their events together."""
    for number, key in enumerate(keys, start=7):
        Event.objects.create(
            kind="run_failed", asset="sales", run_id=number, detail={"selection": key}
        )
    publish_events(timezone.now())
    match_events(timezone.now())
    match_events(timezone.now() + timedelta(minutes=1))


def test_deliveries_with_one_title_are_told_apart_by_partition_and_run(
    channel: Channel, admin: User, vera: User
) -> None:
    AlertRule.objects.update(tags=[])
    failed_runs("2013-01-01", "2013-01-02" * 30)
    text = " ".join(browser_of(vera).get("/alerts/").content.decode().split())
    assert text.count("Slicewise: 1 run failed (sales)") == 2
    run = '<span class="key">2013-01-01</span> <a href="/runs/7/">Run 7</a> </div>'
    assert run in text
    assert re.search(r'<span class="key">[^<]{79}…</span> <a href="/runs/8/">Run 8</a>', text)
    Event.objects.all().delete()
    assert browser_of(vera).get("/alerts/").status_code == 200


def test_a_message_of_several_events_shows_the_last_and_the_number_of_earlier_events(
    admin: User, vera: User
) -> None:
    address = "mailto://mail.example?from=a@example.com&to=b@example.com"
    mail, _ = services.create_channel("mail", "message", address=address, user=admin)
    services.save_rule(None, {"name": "all", "channel": mail}, user=admin)
    failed_runs("2013-01-01", "2013-01-02", "2013-01-03")
    text = " ".join(browser_of(vera).get("/alerts/").content.decode().split())
    assert '<span class="key">2013-01-03</span> <a href="/runs/9/">Run 9</a>' in text
    assert "and 2 earlier events" in text


def test_a_channel_shows_its_recent_messages_that_were_given_up(
    channel: Channel, admin: User, vera: User
) -> None:
    AlertRule.objects.update(tags=[])
    services.send_test(channel, user=admin)
    failed_runs("2013-01-01", "2013-01-02")
    browser = browser_of(vera)
    version = browser.get("/alerts/").context["version"]
    Delivery.objects.update(state="failed")
    page = browser.get("/alerts/", {"state": "failed"})
    text = " ".join(page.content.decode().split())
    assert page.context["version"] != version
    assert re.search(
        r'href="/alerts/\?state=failed&amp;channel=hook#deliveries"[^>]*>.{0,200}2 given up<', text
    )
    narrowed = browser.get("/alerts/", {"state": "failed", "channel": "hook"}).content.decode()
    assert narrowed.count("Given up</span>") == 3
    Delivery.objects.update(created_at=timezone.now() - timedelta(days=8))
    assert "given up<" not in browser.get("/alerts/").content.decode()


def test_the_page_of_a_channel_shows_its_failure_and_sends_a_test(
    channel: Channel, admin: User
) -> None:
    address = f"/alerts/channels/{channel.name}/"
    assert ">Ready</span>" in browser_of(admin).get(address).content.decode()
    AlertRule.objects.update(tags=[])
    failed_runs("2013-01-01")
    Delivery.objects.update(state="failed")
    Channel.objects.update(failures=3, error="Connection refused")
    text = " ".join(browser_of(admin).get(address).content.decode().split())
    assert ">Failing</span>" in text
    assert "Connection refused" in text
    assert "1 given up<" in text
    assert f'action="{address}test/"' in text


def test_a_rule_says_whether_runs_of_backfills_are_left_out(channel: Channel, vera: User) -> None:
    def events(**values: Any) -> str:
        AlertRule.objects.update(**values)
        page = " ".join(browser_of(vera).get("/alerts/").content.decode().split())
        cell = page.split('id="deliveries"')[0].split('<td class="text-cell">')[1]
        return words_of(cell.split("</td>")[0])

    assert events(tags=["prod"]) == "all events of these assets without runs of backfills"
    assert events(tags=[]) == "all without runs of backfills"
    assert events(backfill_runs=True) == "all"
    assert events(backfill_runs=False, kinds=["run_failed"]) == (
        "Run failed without runs of backfills"
    )
    assert events(kinds=["worker_lost"]) == "Worker offline"


def test_messages_that_were_given_up_are_counted_behind_newer_ones_and_up_to_a_bound(
    channel: Channel, admin: User
) -> None:
    AlertRule.objects.update(tags=[])
    other, _ = services.create_channel("other", "webhook", address=ADDRESS, user=admin)
    failed_runs("2013-01-01")
    (lost,) = Delivery.objects.all()
    for number, state, of_channel in ((MOST_COUNTED, "failed", channel), (1, "delivered", other)):
        Delivery.objects.bulk_create(
            Delivery(
                channel=of_channel, state=state, first_position=1, body={},
                send_at=lost.send_at, give_up_at=lost.give_up_at,
            )
            for _ in range(number)
        )  # fmt: skip
    browser = browser_of(admin)
    assert "1,000 given up<" in compact(page_at(browser, "/alerts/"))
    Delivery.objects.filter(pk=lost.pk).update(state="failed")
    assert "1,000+ given up<" in compact(page_at(browser, "/alerts/"))
    Delivery.objects.exclude(pk=lost.pk).update(state="delivered")
    assert "1 given up<" in compact(page_at(browser, "/alerts/"))


def test_deliveries_are_narrowed_by_channel(channel: Channel, admin: User) -> None:
    services.create_channel("other", "webhook", address=ADDRESS, user=admin)
    services.send_test(channel, user=admin)
    browser = browser_of(admin)
    assert "No deliveries" in browser.get("/alerts/?channel=other").content.decode()
    for name in ("hook", "no such channel"):
        text = browser.get("/alerts/", {"channel": name}).content.decode()
        assert "Slicewise: test message" in text
