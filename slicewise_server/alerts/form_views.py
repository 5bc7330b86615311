"""Pages that create, change and delete channels and alert rules."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from accounts_app.page_policy import person_of, posts_need
from accounts_app.policy import Action, may
from assets_app.queries.clock import database_now
from slicewise_server.alerts import services
from slicewise_server.alerts.forms import AlertRuleForm, ChannelForm
from slicewise_server.alerts.lookups import channel_named, rule_named
from slicewise_server.alerts.models import UNSENT_STATES, AlertRule, Channel
from slicewise_server.alerts.shown_deliveries import with_given_up
from slicewise_server.alerts.unknown_assets import warning_of
from slicewise_server.web.forms import ServiceForm
from slicewise_server.web.request_errors import ConflictingRequest, InvalidRequest


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_need(Action.ADMINISTER)
@never_cache
@sensitive_post_parameters("address")
@sensitive_variables()
def channel_new(request: HttpRequest) -> HttpResponse:
    """Render the form of a new channel, or create the channel and show its signing key once."""
    form = ChannelForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        try:
            channel, key = services.create_channel(**form.cleaned_data, user=person_of(request))
        except InvalidRequest as refused:
            form.refuse(refused)
        else:
            if key:
                context = {"channel": channel, "signing_key": key}
                return render(request, "alerts/signing_key.html", context)
            messages.success(request, f"Channel “{channel.name}” created.")
            return redirect("alerts:alerts")
    return _form_page(request, "alerts/channel_form.html", form, Action.ADMINISTER)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_need(Action.ADMINISTER)
@never_cache
@sensitive_post_parameters("address")
@sensitive_variables()
def channel_change(request: HttpRequest, name: str) -> HttpResponse:
    """Render the form of a channel, or change the channel."""
    channel = channel_named(name)
    form = ChannelForm(request.POST if request.method == "POST" else None, channel=channel)
    if form.is_bound and form.is_valid():
        active = form.cleaned_data["active"]
        changes: dict[str, Any] = form.address_changes
        if active != channel.active:
            changes["active"] = active
        try:
            services.change_channel(channel, **changes, user=person_of(request))
        except InvalidRequest as refused:
            form.refuse(refused)
        else:
            messages.success(request, f"Channel “{name}” saved.")
            return redirect("alerts:alerts")
    (given_up,) = with_given_up([channel], database_now())
    context = given_up._asdict()
    return _form_page(request, "alerts/channel_form.html", form, Action.ADMINISTER, **context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_need(Action.ADMINISTER)
def channel_delete(request: HttpRequest, name: str) -> HttpResponse:
    """Ask whether to delete a channel, or delete a channel that no rule uses."""
    channel = channel_named(name)
    form_address = reverse("alerts:channel-change", args=[name])
    if request.method != "POST":
        using_rules = list(channel.rules.all())
        unsent = channel.deliveries.filter(state__in=UNSENT_STATES)
        context = {
            "channel": channel,
            "delivery_count": channel.deliveries.count(),
            "unsent_count": unsent.count(),
            "using_rules": using_rules,
            "objection": services.ways_to_free_channel(using_rules),
        }
        return _question_page(request, "channel", name, Action.ADMINISTER, form_address, context)
    delete = partial(services.delete_channel, channel, user=person_of(request))
    return _delete(request, delete, f"Channel “{name}”", form_address)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_need(Action.ALERTS)
def rule_new(request: HttpRequest) -> HttpResponse:
    """Render the form of a new alert rule, or create the rule."""
    form = AlertRuleForm(request.POST if request.method == "POST" else None)
    return _save_rule(request, form, None)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_need(Action.ALERTS)
def rule_change(request: HttpRequest, name: str) -> HttpResponse:
    """Render the form of an alert rule, or change the rule."""
    alert_rule = rule_named(name)
    form = AlertRuleForm(request.POST if request.method == "POST" else None, alert_rule=alert_rule)
    return _save_rule(request, form, alert_rule)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_need(Action.ALERTS)
def rule_delete(request: HttpRequest, name: str) -> HttpResponse:
    """Ask whether to delete an alert rule, or delete the rule."""
    alert_rule = rule_named(name)
    form_address = reverse("alerts:rule-change", args=[name])
    if request.method != "POST":
        context = {
            "alert_rule": alert_rule,
            "objection": services.objection_to_rule_deletion(alert_rule),
        }
        return _question_page(request, "alert rule", name, Action.ALERTS, form_address, context)
    delete = partial(services.delete_rule, alert_rule, user=person_of(request))
    return _delete(request, delete, f"Alert rule “{name}”", form_address)


def _question_page(
    request: HttpRequest,
    kind: str,
    name: str,
    action: Action,
    form_address: str,
    context: dict[str, Any],
) -> HttpResponse:
    """Return the page that asks before a channel or a rule is deleted."""
    shown = context | {
        "kind": kind,
        "name": name,
        "may_delete": may(request.user, action),
        "form_address": form_address,
    }
    return render(request, "alerts/delete.html", shown)


def _delete(
    request: HttpRequest, delete: Callable[[], None], label: str, form_address: str
) -> HttpResponse:
    """Delete a channel or a rule, and go to the page of alerts; after a conflict to the form."""
    try:
        delete()
    except ConflictingRequest as error:
        messages.error(request, str(error))
        return redirect(form_address)
    messages.success(request, f"{label} deleted.")
    return redirect("alerts:alerts")


def _save_rule(
    request: HttpRequest, form: AlertRuleForm, alert_rule: AlertRule | None
) -> HttpResponse:
    if form.is_bound and form.is_valid():
        try:
            saved = services.save_rule(alert_rule, form.cleaned_data, user=person_of(request))
        except InvalidRequest as refused:
            form.refuse(refused)
        else:
            messages.success(request, f"Alert rule “{saved.name}” saved.")
            if warning := warning_of(saved):
                messages.warning(request, warning)
            return redirect("alerts:alerts")
    context = {
        "alert_rule": alert_rule,
        "channels_exist": Channel.objects.exists(),
        "may_administer": may(request.user, Action.ADMINISTER),
    }
    return _form_page(request, "alerts/rule_form.html", form, Action.ALERTS, **context)


def _form_page(
    request: HttpRequest, template: str, form: ServiceForm, action: Action, **context: Any
) -> HttpResponse:
    shown = context | {"form": form, "may_save": may(request.user, action)}
    return render(request, template, shown, status=400 if form.is_bound else 200)
