"""Operations on channels, rules and deliveries: checked, recorded in the audit trail."""

import re
import secrets as random_secrets
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.http import Http404

from accounts_app import audit, policy
from accounts_app.models import User
from accounts_app.policy import Action
from assets_app.queries.clock import database_now
from slicewise.declaring import LONGEST_GATHERING
from slicewise_server.alerts.channel_addresses import UnfitAddress, shown_address
from slicewise_server.alerts.declared_rules import (
    NAME_END,
    lock_declared_rules,
    store_declared_rules,
)
from slicewise_server.alerts.matching import KEPT_FOR
from slicewise_server.alerts.models import (
    VARIABLE_FORM,
    VARIABLE_LENGTH,
    VARIABLE_PATTERN,
    AlertRule,
    Channel,
    ChannelKind,
    Delivery,
    DeliveryState,
)
from slicewise_server.alerts.rule_endings import RuleEndings, detach_closed_messages
from slicewise_server.alerts.secrets import encrypt
from slicewise_server.events.feed import end_of_feed
from slicewise_server.events.models import unknown_kind
from slicewise_server.web.request_errors import ConflictingRequest, InvalidRequest

_DECLARED = "Definition files declare this rule: change the files, or pause the rule."
_RULES_OF_PEOPLE = "Give these rules another channel first, or delete these rules."
_DECLARED_RULES = (
    "Rules whose names end with (declared) come from definition files: name another channel in"
    " alerts= there, or remove the argument."
)
_TEST_BODY = {
    "title": "Slicewise: test message",
    "text": "This message shows that Slicewise reaches this channel.",
    "event": None,
}


@transaction.atomic
def create_channel(
    name: str, kind: str, *, address: str = "", variable: str = "", user: User
) -> tuple[Channel, str]:
    """Create a channel; return the channel, and the signing key of a webhook, shown this once.

    Raises PermissionDenied, and InvalidRequest for an address that no message can be sent to.
    """
    policy.require(user, Action.ADMINISTER)
    if Channel.objects.filter(name=name).exists():
        raise InvalidRequest({"name": f"There is a channel {name!r} already."})
    channel = Channel(name=name, kind=kind)
    _set_address(channel, address, variable)
    signing_key = ""
    if kind == ChannelKind.WEBHOOK:
        signing_key = random_secrets.token_urlsafe(32)
        channel.signing_key = encrypt(signing_key)
    try:
        with transaction.atomic():
            channel.save()
    except IntegrityError:
        raise InvalidRequest({"name": f"There is a channel {name!r} already."}) from None
    audit.record(user, "create", "channel", name, _facts_of(channel))
    store_declared_rules()
    return channel, signing_key


@transaction.atomic
def change_channel(
    channel: Channel,
    *,
    address: str | None = None,
    variable: str | None = None,
    active: bool | None = None,
    user: User,
) -> Channel:
    """Change the address of a channel, or pause the channel; pauses after failures end."""
    policy.require(user, Action.ADMINISTER)
    channel = _locked_channel(channel)
    if address is None and variable is None and active is None:
        return channel
    before = _facts_of(channel)
    if address is not None or variable is not None:
        _set_address(channel, address or "", variable or "")
    if active is not None:
        channel.active = active
    channel.retry_at, channel.failures, channel.error = None, 0, ""
    channel.save()
    detail = {"before": before, "after": _facts_of(channel)}
    audit.record(user, "change", "channel", channel.name, detail)
    return channel


@transaction.atomic
def delete_channel(channel: Channel, *, user: User) -> None:
    """Delete a channel and its deliveries; raise ConflictingRequest if a rule uses the channel."""
    policy.require(user, Action.ADMINISTER)
    # A sync that has added a rule of the channel and has not committed yet would fail at its end.
    lock_declared_rules()
    channel = _locked_channel(channel)
    try:
        channel.delete()
    except ProtectedError:
        objection = objection_to_channel_deletion(channel)
        raise ConflictingRequest({"": objection}) from None
    audit.record(user, "delete", "channel", channel.name)


def objection_to_channel_deletion(channel: Channel) -> str:
    """Return why a channel cannot be deleted now; empty if no rule uses the channel."""
    alert_rules = list(channel.rules.all())
    if not alert_rules:
        return ""
    names = ", ".join(f"“{alert_rule.name}”" for alert_rule in alert_rules)
    return f"Alert rules use the channel: {names}. {ways_to_free_channel(alert_rules)}"


def ways_to_free_channel(alert_rules: Iterable[AlertRule]) -> str:
    """Return how to delete these rules of a channel, or to give these rules another channel."""
    declared = {alert_rule.declared for alert_rule in alert_rules}
    return " ".join(
        sentence
        for is_declared, sentence in ((False, _RULES_OF_PEOPLE), (True, _DECLARED_RULES))
        if is_declared in declared
    )


@transaction.atomic
def send_test(channel: Channel, *, user: User) -> Delivery:
    """Queue a test message, which the next round sends."""
    policy.require(user, Action.ALERTS)
    if not _locked_channel(channel).active:
        raise ConflictingRequest({"": "The channel is paused: it sends no message."})
    now = database_now()
    Channel.objects.filter(pk=channel.pk).update(retry_at=None)
    delivery = Delivery.objects.create(
        channel=channel,
        state=DeliveryState.WAITING,
        body=_TEST_BODY,
        send_at=now,
        give_up_at=now,
    )
    audit.record(user, "test", "channel", channel.name)
    return delivery


@transaction.atomic
def resend(delivery: Delivery, *, user: User) -> Delivery:
    """Send a delivery again, with the same id and body, for one more day."""
    policy.require(user, Action.ALERTS)
    locked = Delivery.objects.select_for_update().filter(pk=delivery.pk).first()
    if locked is None:
        raise Http404(f"There is no delivery {delivery.key}.")
    delivery = locked
    if delivery.state not in (DeliveryState.DELIVERED, DeliveryState.FAILED):
        raise ConflictingRequest({"": "The delivery is still to be sent."})
    now = database_now()
    delivery.state, delivery.send_at, delivery.give_up_at = (
        DeliveryState.WAITING,
        now,
        now + KEPT_FOR,
    )
    delivery.delivered_at, delivery.tries = None, 0
    delivery.save()
    Channel.objects.filter(pk=delivery.channel_id).update(retry_at=None)
    audit.record(user, "resend", "delivery", str(delivery.key))
    return delivery


@transaction.atomic
def save_rule(alert_rule: AlertRule | None, fields: Mapping[str, Any], *, user: User) -> AlertRule:
    """Create a rule, or change the named fields of one. A new rule begins with the next event."""
    policy.require(user, Action.ALERTS)
    _check_rule(fields, exclude=alert_rule)
    endings = RuleEndings()
    if channel := fields.get("channel"):
        _locked_channel(channel)
    if alert_rule is None:
        try:
            with transaction.atomic():
                alert_rule = AlertRule.objects.create(position=end_of_feed(), **fields)
        except IntegrityError:
            message = f"There is an alert rule {fields['name']!r} already."
            raise InvalidRequest({"name": message}) from None
        audit.record(user, "create", "alert rule", alert_rule.name, rule_facts(alert_rule))
        return alert_rule
    alert_rule = _locked(alert_rule)
    if not fields:
        return alert_rule
    if alert_rule.declared and fields.keys() - {"active"}:
        raise ConflictingRequest({"": _DECLARED})
    endings.end(alert_rule)
    before = rule_facts(alert_rule)
    if fields.get("active") and not alert_rule.active:
        # Events of the pause are not sent afterwards.
        alert_rule.position = end_of_feed()
    for name, value in fields.items():
        setattr(alert_rule, name, value)
    alert_rule.save()
    detail = {"before": before, "after": rule_facts(alert_rule)}
    audit.record(user, "change", "alert rule", alert_rule.name, detail)
    return alert_rule


def delete_rule(alert_rule: AlertRule, *, user: User) -> None:
    """Delete a rule; its deliveries stay, and an open message is closed with its events."""
    policy.require(user, Action.ALERTS)
    if objection := objection_to_rule_deletion(alert_rule):
        raise ConflictingRequest({"": objection})
    # During the deletion no event gets a position: the deletion has few messages to detach.
    detach_closed_messages(alert_rule)
    with transaction.atomic():
        endings = RuleEndings()
        alert_rule = _locked(alert_rule)
        endings.end(alert_rule)
        audit.record(user, "delete", "alert rule", alert_rule.name, rule_facts(alert_rule))
        alert_rule.delete()


def objection_to_rule_deletion(alert_rule: AlertRule) -> str:
    """Return why no person can delete a rule; empty for a rule that a person created."""
    return _DECLARED if alert_rule.declared else ""


def _locked_channel(channel: Channel) -> Channel:
    """Return the channel as it is now, locked; raise Http404 if the channel is deleted."""
    locked = Channel.objects.select_for_update(no_key=True).filter(pk=channel.pk).first()
    if locked is None:
        raise Http404(f"There is no channel {channel.name!r}.")
    return locked


def _locked(alert_rule: AlertRule) -> AlertRule:
    """Return the rule as it is now, locked; raise Http404 if the rule is deleted."""
    alert_rules = AlertRule.objects.select_for_update(of=("self",), no_key=True)
    locked = alert_rules.select_related("channel").filter(pk=alert_rule.pk).first()
    if locked is None:
        raise Http404(f"There is no alert rule {alert_rule.name!r}.")
    return locked


def rule_facts(alert_rule: AlertRule) -> dict[str, Any]:
    """Return the fields of a rule as JSON values, for the audit trail."""
    names = ("kinds", "assets", "groups", "tags", "owners", "gather_seconds", "backfill_runs")
    return {
        "channel": alert_rule.channel.name,
        "active": alert_rule.active,
        **{name: getattr(alert_rule, name) for name in names},
    }


def _check_rule(fields: Mapping[str, Any], *, exclude: AlertRule | None) -> None:
    errors = {}
    same_name = AlertRule.objects.filter(name=fields.get("name"))
    if same_name.exclude(name=exclude.name if exclude else "").exists():
        errors["name"] = f"There is an alert rule {fields['name']!r} already."
    elif fields.get("name", "").endswith(NAME_END):
        errors["name"] = f"Only rules of definition files have names that end with {NAME_END!r}."
    if objection := unknown_kind(fields.get("kinds", ())):
        errors["kinds"] = objection
    seconds, longest = fields.get("gather_seconds", 0), int(LONGEST_GATHERING.total_seconds())
    if not 0 <= seconds <= longest:
        errors["gather_seconds"] = f"Give a whole number from 0 to {longest}."
    if errors:
        raise InvalidRequest(errors)


def _set_address(channel: Channel, address: str, variable: str) -> None:
    if bool(address) == bool(variable):
        raise InvalidRequest({"address": "Give an address, or a variable that holds the address."})
    if variable:
        if len(variable) > VARIABLE_LENGTH or not re.fullmatch(VARIABLE_PATTERN, variable):
            raise InvalidRequest({"variable": VARIABLE_FORM})
        channel.variable, channel.address, channel.shown_address = variable, b"", f"${variable}"
        return
    try:
        channel.shown_address = shown_address(channel.kind, address)
    except UnfitAddress as error:
        raise InvalidRequest({"address": str(error)}) from None
    channel.variable, channel.address = "", encrypt(address)


def _facts_of(channel: Channel) -> dict[str, Any]:
    return {"kind": channel.kind, "address": channel.shown_address, "active": channel.active}
