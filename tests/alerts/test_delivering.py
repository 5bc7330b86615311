"""Deliveries to real receivers: signed, tried again, and never two messages under one id."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from urllib3.connection import HTTPConnection

from accounts_app.models import AuditEntry, User
from slicewise_server.alerts import delivering, sending, services
from slicewise_server.alerts.delivering import forget_deliveries, send_due
from slicewise_server.alerts.matching import match_events
from slicewise_server.alerts.models import AlertRule, Channel, Delivery
from slicewise_server.events.feed import publish_events
from slicewise_server.events.models import Event
from slicewise_server.web.request_errors import InvalidRequest
from tests.alerts.conftest import Mailbox, Receiver
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def webhook(receiver: Receiver, admin: User, **rule: Any) -> str:
    """Create a webhook to the receiver with a rule; return the signing key."""
    channel, key = services.create_channel("hook", "webhook", address=receiver.address, user=admin)
    services.save_rule(None, {"name": "all", "channel": channel, **rule}, user=admin)
    return key


def happen(*assets: str, kind: str = "run_failed", **fields: Any) -> None:
    """Write and publish an event for each asset, and write the deliveries."""
    for asset in assets:
        Event.objects.create(kind=kind, asset=asset, **fields)
    publish_events(timezone.now())
    match_events(timezone.now())


def let_pauses_pass() -> None:
    """Move every time of a next try into the past, as if the pauses were over."""
    past = timezone.now() - timedelta(seconds=1)
    Delivery.objects.filter(state="waiting").update(send_at=past)
    Channel.objects.update(retry_at=None)


def test_a_webhook_gets_each_event_once_and_signed(receiver: Receiver, admin: User) -> None:
    key = webhook(receiver, admin)
    happen("a", "b", error="ValueError: no rows", detail={"partitions": 1})
    assert send_due() == 2
    assert send_due() == 0
    assert [body["event"]["asset"] for body in receiver.bodies] == ["a", "b"]
    for headers, body in receiver.requests:
        signed = headers["x-slicewise-timestamp"].encode() + b"." + body
        digest = hmac.new(key.encode(), signed, hashlib.sha256).hexdigest()
        assert headers["x-slicewise-signature"] == f"sha256={digest}"
        assert headers["x-slicewise-delivery"] == json.loads(body)["delivery"]
    assert set(Delivery.objects.values_list("state", "status", "answer")) == {
        ("delivered", 200, "")
    }


def test_a_receiver_that_fails_gets_the_same_message_under_the_same_id(
    receiver: Receiver, admin: User
) -> None:
    receiver.statuses = [500, 503, 200]
    webhook(receiver, admin)
    happen("a")
    for expected in ("waiting", "waiting", "delivered"):
        assert send_due() == 1
        assert send_due() == 0
        assert Delivery.objects.get().state == expected
        let_pauses_pass()
    assert len({body for _, body in receiver.requests}) == 1
    assert Channel.objects.get().failures == 0


def test_a_receiver_that_is_away_loses_nothing(receiver: Receiver, admin: User) -> None:
    webhook(receiver, admin)
    address = receiver.address
    channel = Channel.objects.get()
    services.change_channel(channel, address="http://127.0.0.1:9/gone", user=admin)
    happen(*"abcde")
    send_due()
    assert set(Delivery.objects.values_list("state", flat=True)) == {"waiting"}
    assert Channel.objects.get().error == "The connection was refused."
    services.change_channel(channel, address=address, user=admin)
    let_pauses_pass()
    send_due()
    assert [body["event"]["asset"] for body in receiver.bodies] == list("abcde")


def test_a_channel_that_hangs_keeps_no_other_waiting(receiver: Receiver, admin: User) -> None:
    # Nothing is read from the channel that hangs for 10 s, and then it is left.
    receiver.pause_seconds = 300.0
    webhook(receiver, admin)
    services.create_channel("away", "webhook", address="http://127.0.0.1:9/", user=admin)
    away = Channel.objects.get(name="away")
    services.save_rule(None, {"name": "second", "channel": away}, user=admin)
    happen("a")
    began = time.monotonic()
    assert send_due() == 2
    assert time.monotonic() - began < 120
    hanging = Delivery.objects.get(channel__name="hook")
    assert hanging.state == "waiting"
    assert hanging.answer == "The request timed out."
    assert Delivery.objects.get(channel__name="away").tries == 1


def test_a_delivery_is_given_up_after_a_day_and_sent_again_by_hand(
    receiver: Receiver, admin: User
) -> None:
    receiver.statuses = [500, 200]
    webhook(receiver, admin)
    happen("a")
    Delivery.objects.update(give_up_at=timezone.now() - timedelta(seconds=1))
    send_due()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.status) == ("failed", 500)
    services.resend(delivery, user=admin)
    send_due()
    assert Delivery.objects.get().state == "delivered"
    assert len({body for _, body in receiver.requests}) == 1
    assert AuditEntry.objects.filter(action="resend").exists()


def test_a_worker_that_dies_while_sending_leaves_a_claim_that_runs_out(
    receiver: Receiver, admin: User
) -> None:
    webhook(receiver, admin)
    happen("a")
    now = timezone.now()
    Delivery.objects.update(claimed_until=now + timedelta(minutes=1))
    assert send_due() == 0
    Delivery.objects.update(claimed_until=now - timedelta(seconds=1))
    assert send_due() == 1
    assert Delivery.objects.get().state == "delivered"


def test_redirects_are_not_followed(receiver: Receiver, admin: User) -> None:
    receiver.statuses = [302]
    webhook(receiver, admin)
    happen("a")
    send_due()
    assert (Delivery.objects.get().state, Delivery.objects.get().status) == ("waiting", 302)


def test_a_mail_tells_of_many_failures_in_one_message(
    mailbox: tuple[Mailbox, str], admin: User, settings: Any
) -> None:
    settings.SLICEWISE_URL = "https://slicewise.example"
    box, address = mailbox
    channel, _ = services.create_channel("mail", "message", address=address, user=admin)
    services.save_rule(None, {"name": "mail", "channel": channel}, user=admin)
    for number in range(100):
        Event.objects.create(
            kind="run_failed",
            asset="sales",
            run_id=number + 1,
            error=f"Traceback …\nValueError: no rows for day {number} (password='hunter2')",
        )
    happen("stock", run_id=500, error="KeyError: 'x'")
    assert send_due() == 0
    match_events(timezone.now() + timedelta(seconds=31))
    let_pauses_pass()
    assert send_due() == 1
    ((subject, text),) = box.mails
    assert "101 runs failed" in subject
    assert "sales: 100 runs failed: ValueError: no rows for day 99" in text
    assert "https://slicewise.example/runs/100/" in text
    assert "stock: 1 run failed: KeyError" in text
    assert "hunter2" not in text


def test_no_secret_is_shown(receiver: Receiver, admin: User) -> None:
    webhook(receiver, admin)
    channel = Channel.objects.get()
    assert channel.shown_address == "http://127.0.0.1/…"
    assert b"s3cret-path" not in bytes(channel.address)
    services.change_channel(channel, address="http://127.0.0.1:9/hooks/s3cret-path", user=admin)
    happen("a")
    send_due()
    assert "s3cret-path" not in Delivery.objects.get().answer
    assert "s3cret-path" not in Channel.objects.get().error
    assert "s3cret-path" not in json.dumps(
        list(AuditEntry.objects.values_list("detail", flat=True))
    )


def test_an_address_in_a_variable_is_read_by_the_worker(
    receiver: Receiver, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = "SLICEWISE_ALERT_HOOK"
    channel, _ = services.create_channel("hook", "webhook", variable=variable, user=admin)
    services.save_rule(None, {"name": "all", "channel": channel}, user=admin)
    happen("a")
    send_due()
    assert variable in Delivery.objects.get().answer
    monkeypatch.setenv(variable, receiver.address)
    let_pauses_pass()
    send_due()
    assert len(receiver.requests) == 1


def test_an_address_of_an_earlier_key_is_read_while_the_settings_name_the_key(
    receiver: Receiver, admin: User, settings: Any
) -> None:
    webhook(receiver, admin)
    settings.SECRET_KEY, earlier = "k" * 50, settings.SECRET_KEY
    happen("a")
    send_due()
    assert "SECRET_KEY" in Delivery.objects.get().answer
    settings.SECRET_KEY_FALLBACKS = [earlier]
    let_pauses_pass()
    send_due()
    assert Delivery.objects.get().state == "delivered"


def test_a_paused_channel_gets_its_messages_later(receiver: Receiver, admin: User) -> None:
    webhook(receiver, admin)
    services.change_channel(Channel.objects.get(), active=False, user=admin)
    happen("a")
    assert send_due() == 0
    services.change_channel(Channel.objects.get(), active=True, user=admin)
    assert send_due() == 1


def test_a_test_message_is_sent_once(receiver: Receiver, admin: User) -> None:
    webhook(receiver, admin)
    services.send_test(Channel.objects.get(), user=admin)
    send_due()
    (body,) = receiver.bodies
    assert body["title"] == "Slicewise: test message"


def test_old_deliveries_are_deleted_once_they_have_ended(receiver: Receiver, admin: User) -> None:
    webhook(receiver, admin)
    happen("a")
    later = timezone.now() + timedelta(days=1)
    assert forget_deliveries(later) == 0
    send_due()
    assert forget_deliveries(later) == 1
    assert AlertRule.objects.exists()


def is_sending(channel: Channel) -> bool:
    """Return whether a thread still sends to the channel."""
    return any(thread.name == f"alerts-{channel.pk}" for thread in threading.enumerate())


@pytest.fixture
def dripping() -> Iterator[str]:
    """The address of a receiver whose headers come a byte at a time and never end."""
    over = threading.Event()

    def drip(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Drip: ")
            while not over.wait(0.2):
                connection.sendall(b"x")

    def serve(server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _address = server.accept()
                threading.Thread(target=drip, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        over.set()


def test_a_receiver_that_drips_holds_no_round(
    receiver: Receiver, dripping: str, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "WEBHOOK_SECONDS", 1.0)
    webhook(receiver, admin)
    drip, _ = services.create_channel("drip", "webhook", address=dripping, user=admin)
    services.save_rule(None, {"name": "second", "channel": drip}, user=admin)
    happen("a")
    began = time.monotonic()
    assert send_due() == 2
    assert time.monotonic() - began < 120, "the headers never end"
    assert Delivery.objects.get(channel=drip).answer == "The request timed out."
    assert wait_until(lambda: len(receiver.requests) == 1)
    assert wait_until(lambda: not is_sending(drip))


def test_a_status_before_the_deadline_with_headers_after_the_deadline_counts_not(
    dripping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "WEBHOOK_SECONDS", 1.0)
    with pytest.raises(TimeoutError):
        sending.post_signed(dripping, "key", "id", {})


def test_a_connection_that_is_opened_after_the_deadline_is_ended(
    dripping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = HTTPConnection._new_conn

    def connect_late(self: HTTPConnection) -> socket.socket:
        time.sleep(1.0)
        return connect(self)

    monkeypatch.setattr(HTTPConnection, "_new_conn", connect_late)
    monkeypatch.setattr(sending, "WEBHOOK_SECONDS", 0.5)
    is_over = threading.Event()

    def post() -> None:
        with suppress(TimeoutError):
            sending.post_signed(dripping, "key", "id", {})
        is_over.set()

    # A thread that waits for the whole answer would never end.
    threading.Thread(target=post, daemon=True).start()
    assert is_over.wait(60)


def test_one_message_to_a_channel_is_under_way(
    receiver: Receiver, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, tries = threading.Event(), []

    def hang(*_arguments: object) -> sending.Answer:
        tries.append(1)
        over.wait(300)
        return sending.Answer(True, "", 200)

    monkeypatch.setattr(sending, "WEBHOOK_SECONDS", 0.5)
    monkeypatch.setattr(sending, "post_signed", hang)
    webhook(receiver, admin)
    happen("a")
    send_due()
    let_pauses_pass()
    send_due()
    assert "under way" in Delivery.objects.get().answer
    assert len(tries) == 1
    over.set()
    channel = Channel.objects.get()
    assert wait_until(lambda: not is_sending(channel))
    # A slow machine takes longer than half a second to start a thread.
    monkeypatch.setattr(sending, "WEBHOOK_SECONDS", 60.0)
    let_pauses_pass()
    send_due()
    assert Delivery.objects.get().state == "delivered"


def test_healthy_channels_come_before_failing_ones(
    receiver: Receiver, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.create_channel("away", "webhook", address="http://127.0.0.1:9/", user=admin)
    away = Channel.objects.get(name="away")
    services.save_rule(None, {"name": "first", "channel": away}, user=admin)
    Channel.objects.update(failures=3)
    webhook(receiver, admin)
    happen("a")
    order: list[str] = []
    monkeypatch.setattr(delivering, "_CHANNELS_AT_ONCE", 1)

    def noted(channel: Channel, key: str, body: dict[str, Any]) -> sending.Answer:
        order.append(channel.name)
        return sending.send(channel, key, body)

    monkeypatch.setattr(delivering, "send", noted)
    assert send_due() == 2
    assert order == ["hook", "away"]


def test_deliveries_of_a_paused_channel_are_given_up_in_time(
    receiver: Receiver, admin: User
) -> None:
    webhook(receiver, admin)
    happen("a", "b", "c")
    services.change_channel(Channel.objects.get(), active=False, user=admin)
    now = timezone.now()
    first, second, third = Delivery.objects.order_by("id")
    over = Delivery.objects.filter(pk__in=(first.pk, second.pk))
    over.update(give_up_at=now - timedelta(seconds=1))
    Delivery.objects.filter(pk=second.pk).update(claimed_until=now + timedelta(minutes=1))
    assert send_due() == 0
    states = {delivery.pk: delivery.state for delivery in Delivery.objects.all()}
    assert states == {first.pk: "failed", second.pk: "waiting", third.pk: "waiting"}
    assert receiver.requests == []


def test_any_error_is_an_answer_with_its_type_alone(
    receiver: Receiver, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> sending.Answer:
        raise LookupError("s3cret")

    monkeypatch.setattr(sending, "post_signed", fail)
    webhook(receiver, admin)
    happen("a")
    assert send_due() == 1
    delivery = Delivery.objects.get()
    assert delivery.answer == "The message could not be sent: LookupError."
    assert (delivery.state, delivery.claimed_until, Channel.objects.get().failures) == (
        "waiting",
        None,
        1,
    )


def test_an_answer_that_cannot_be_stored_is_a_failure(
    receiver: Receiver, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [sending.Answer(True, "", 2**40), sending.Answer(False, "no\0 \ud800text")]
    monkeypatch.setattr(delivering, "send", lambda *_arguments: answers.pop(0))
    webhook(receiver, admin)
    happen("a")
    assert send_due() == 1
    assert Channel.objects.get().error == "The message could not be sent: DataError."
    let_pauses_pass()
    assert send_due() == 1
    assert Channel.objects.get().error == "no text"


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        ("message", "json://h/?retry=3"),
        ("message", "json://h/?a=b&WAIT=20"),
        ("message", "json://h/?rto=86400"),
        ("message", "json://h/?c%74o=86400"),
        ("message", "json://h/?redirect=yes"),
        ("message", "json://h/?method=DELETE"),
        ("message", "workflows://h:1/aaaa/bbbb/?template=/etc/x.json"),
        ("message", "fcm://project/token/?keyfile=/etc/x.json"),
        ("message", "mailto://u:p@h.example?pgppub=/etc/x"),
        ("message", "syslog://"),
        ("message", "json://a.example/x json://u:s3cret@b.example/"),
        ("message", "json://a.example/x,json://b.example/"),
        ("message", "json://a.example/\0x"),
        ("webhook", "http://h.example\\@x/"),
        ("webhook", "http://a b/"),
        ("webhook", "http://h.example/\n"),
        ("webhook", "http://h.example:99999/"),
    ],
)
def test_an_unfit_address_is_refused(kind: str, address: str, admin: User) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        services.create_channel("x", kind, address=address, user=admin)
    assert "s3cret" not in str(refusal.value)
    assert not Channel.objects.exists()


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("json://user:s3cret@h.example/s3cret?+X=s3cret", "json://h.example/…"),
        ("ntfy://s3crettopic", "ntfys://…"),
        ("tgram://123456789:s3cretabcdefghijklmnopqrstuvwxyzabc/1/", "tgram://…"),
        ("mailto://user:s3cret@mail.example?to=a@b.example,c@b.example", "mailto://mail.example/…"),
    ],
)
def test_of_an_address_only_scheme_and_host_are_shown(
    address: str, shown: str, admin: User
) -> None:
    channel, _ = services.create_channel("x", "message", address=address, user=admin)
    assert channel.shown_address == shown


def test_a_service_follows_no_redirect_and_logs_no_address(
    receiver: Receiver, admin: User, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    receiver.statuses = [307]
    address = receiver.address.replace("http://", "json://")
    channel, _ = services.create_channel("json", "message", address=address, user=admin)
    services.send_test(channel, user=admin)
    assert send_due() == 1
    assert len(receiver.requests) == 1
    assert Delivery.objects.get().answer == "The service did not accept the message."
    assert "s3cret-path" not in caplog.text


def test_the_value_of_a_variable_is_checked_too(
    admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = "SLICEWISE_ALERT_HOST"
    channel, _ = services.create_channel("host", "message", variable=variable, user=admin)
    services.send_test(channel, user=admin)
    monkeypatch.setenv(variable, " syslog://\n")
    assert send_due() == 1
    assert Delivery.objects.get().answer == "The address names no service of the network."
