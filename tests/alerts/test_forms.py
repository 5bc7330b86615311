"""Channels and alert rules by page."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts_app.models import User
from slicewise_server.alerts import services
from slicewise_server.alerts.models import AlertRule, Channel
from slicewise_server.alerts.secrets import decrypt
from tests.clients import browser_of
from tests.factories import asset

pytestmark = pytest.mark.django_db
ADDRESS = "https://hooks.example/T0/s3cret"


@pytest.fixture
def browser(admin: User) -> Client:
    return browser_of(admin)


@pytest.fixture
def channel(admin: User) -> Channel:
    return services.create_channel("hook", "webhook", address=ADDRESS, user=admin)[0]


def test_a_webhook_is_created_and_its_key_shown_once(browser: Client) -> None:
    form = {"name": "hook", "kind": "webhook", "address": ADDRESS}
    answer = browser.post("/alerts/new-channel/", form)
    channel = Channel.objects.get()
    key = decrypt(channel.signing_key)
    assert key in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    for page in ("/alerts/", "/alerts/channels/hook/"):
        text = browser.get(page).content.decode()
        assert key not in text
        assert "s3cret" not in text


def test_errors_stand_at_their_fields_and_addresses_are_not_sent_back(browser: Client) -> None:
    form = {"name": "a/b", "kind": "webhook", "address": "ftp://hooks.example/s3cret"}
    answer = browser.post("/alerts/new-channel/", form)
    assert answer.status_code == 400
    assert "A name holds neither / nor control characters." in answer.context["form"].errors["name"]
    form["name"] = "hook"
    answer = browser.post("/alerts/new-channel/", form)
    assert answer.status_code == 400
    assert answer.context["form"].errors["address"]
    assert "s3cret" not in answer.content.decode()
    assert not Channel.objects.exists()


def test_a_channel_keeps_its_address_unless_a_new_one_is_given(
    browser: Client, channel: Channel
) -> None:
    browser.post("/alerts/channels/hook/", {})
    paused = Channel.objects.get()
    assert not paused.active
    assert decrypt(paused.address) == ADDRESS
    browser.post("/alerts/channels/hook/", {"active": "on", "variable": "SLICEWISE_ALERT_HOOK"})
    channel.refresh_from_db()
    assert channel.active
    assert channel.variable == "SLICEWISE_ALERT_HOOK"


def test_a_saved_form_without_changes_writes_nothing(browser: Client, channel: Channel) -> None:
    Channel.objects.update(failures=3)
    browser.post("/alerts/channels/hook/", {"active": "on"})
    channel.refresh_from_db()
    assert channel.failures == 3


def test_a_channel_with_rules_is_not_deleted(
    browser: Client, channel: Channel, admin: User
) -> None:
    rule = services.save_rule(None, {"name": "all", "channel": channel}, user=admin)
    objection = "Alert rules use the channel: “all”."
    question = " ".join(browser.get("/alerts/channels/hook/delete/").content.decode().split())
    assert "Channel “hook” is in use" in question
    assert "Delete channel" not in question
    assert 'Alert rules use the channel: <a href="/alerts/rules/all/">all</a>.' in question
    assert "Give these rules another channel first" in question
    assert "come from definition files" not in question
    assert "Deletes the channel" not in question
    answer = browser.post("/alerts/channels/hook/delete/", follow=True)
    assert objection in answer.content.decode()
    services.delete_rule(rule, user=admin)
    browser.post("/alerts/channels/hook/delete/")
    assert not Channel.objects.exists()


def test_a_page_asks_before_a_channel_is_deleted(
    browser: Client, channel: Channel, admin: User
) -> None:
    services.send_test(channel, user=admin)
    form = browser.get("/alerts/channels/hook/").content.decode()
    assert "formaction" not in form
    assert 'href="/alerts/channels/hook/delete/"' in form
    page = " ".join(browser.get("/alerts/channels/hook/delete/").content.decode().split())
    assert "Delete channel “hook”?" in page
    assert "with its 1 delivery, of which 1 is not sent yet." in page
    assert 'class="btn btn-danger"' in page
    assert Channel.objects.exists()


def test_a_page_asks_before_a_rule_is_deleted(
    browser: Client, channel: Channel, admin: User
) -> None:
    services.save_rule(None, {"name": "failures", "channel": channel}, user=admin)
    form = browser.get("/alerts/rules/failures/").content.decode()
    assert "formaction" not in form
    assert 'href="/alerts/rules/failures/delete/"' in form
    page = " ".join(browser.get("/alerts/rules/failures/delete/").content.decode().split())
    assert "Delete alert rule “failures”?" in page
    assert "deliveries stay" in page
    assert AlertRule.objects.exists()


def test_a_rule_is_created_changed_and_deleted(browser: Client, channel: Channel) -> None:
    form = {
        "name": "failures",
        "channel": "hook",
        "kinds": ["run_failed", "backfill_failed"],
        "assets": "orders\r\n prices, old \r\n\r\norders",
        "tags": "prod",
        "gather_seconds": "60",
    }
    assert browser.post("/alerts/new-rule/", form).status_code == 302
    rule = AlertRule.objects.get()
    assert rule.assets == ["orders", "prices, old"]
    assert (rule.tags, rule.kinds) == (["prod"], ["run_failed", "backfill_failed"])
    assert rule.active
    shown = browser.get("/alerts/rules/failures/").content.decode()
    assert "orders\nprices, old" in shown
    changed = form | {"assets": "", "kinds": [], "active": "on", "backfill_runs": "on"}
    assert browser.post("/alerts/rules/failures/", changed).status_code == 302
    rule.refresh_from_db()
    assert (rule.assets, rule.kinds, rule.backfill_runs) == ([], [], True)
    browser.post("/alerts/rules/failures/delete/")
    assert not AlertRule.objects.exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gather_seconds", "-1"),
        ("gather_seconds", "4000"),
        ("gather_seconds", "many"),
        ("kinds", "no_kind"),
        ("channel", "none"),
        ("name", ""),
        ("name", "x (declared)"),
        ("assets", "x" * 251),
        ("assets", "orders\nraw\0"),
        ("channel", "hook\0"),
        ("owners", "\n".join(map(str, range(1_001)))),
    ],
)
def test_a_wrong_value_is_an_error_of_its_field(
    browser: Client, channel: Channel, field: str, value: str
) -> None:
    form = {"name": "rule", "channel": "hook", "gather_seconds": "30"} | {field: value}
    answer = browser.post("/alerts/new-rule/", form)
    assert answer.status_code == 400
    assert list(answer.context["form"].errors) == [field]
    assert not AlertRule.objects.exists()


def test_a_declared_rule_is_only_paused(browser: Client, channel: Channel) -> None:
    rule = AlertRule.objects.create(name="x (declared)", channel=channel, declared=True, position=0)
    text = browser.get("/alerts/rules/x (declared)/").content.decode()
    assert "Definition files declare this rule" in text
    assert "/delete/" not in text
    asked = browser.get("/alerts/rules/x (declared)/delete/").content.decode()
    assert "Definition files declare this rule" in asked
    assert 'class="btn btn-danger"' not in asked
    browser.post("/alerts/rules/x (declared)/", {"kinds": "run_failed"})
    rule.refresh_from_db()
    assert (rule.active, rule.kinds) == (False, [])


def test_who_may_not_change_alerts_is_refused(vera: User, olga: User, channel: Channel) -> None:
    viewer, editor = browser_of(vera), browser_of(olga)
    assert viewer.post("/alerts/new-rule/", {}).status_code == 403
    assert editor.post("/alerts/new-channel/", {}).status_code == 403
    assert editor.post("/alerts/channels/hook/delete/").status_code == 403
    assert viewer.get("/alerts/new-rule/").context["may_save"] is False
    asked = editor.get("/alerts/channels/hook/delete/").content.decode()
    assert "Not permitted." in asked
    assert 'class="btn btn-danger"' not in asked
    assert "/alerts/new-channel/" not in editor.get("/alerts/").content.decode()


def test_a_name_that_no_asset_has_is_saved_with_a_warning(
    browser: Client, channel: Channel
) -> None:
    for name in ("clicks", "conversion"):
        asset(name)
    form = {"name": "shop", "channel": "hook", "gather_seconds": "30", "active": "on"}
    form["assets"] = "clicks\nconversoin\nlater"
    text = browser.post("/alerts/new-rule/", form, follow=True).content.decode()
    assert "Alert rule “shop” saved." in text
    assert (
        "No definition file declares conversoin (did you mean conversion?), later."
        " The rule sends no alerts of such an asset until a file declares the asset." in text
    )
    assert AlertRule.objects.get().assets == ["clicks", "conversoin", "later"]
    listed = "Rule “shop”: no definition file declares conversoin, later."
    assert listed in " ".join(browser.get("/alerts/").content.decode().split())
    for name in ("conversoin", "later"):
        asset(name)
    assert "no definition file declares" not in browser.get("/alerts/").content.decode()
    answer = browser.post("/alerts/rules/shop/", form, follow=True)
    assert "No definition file declares" not in answer.content.decode()
