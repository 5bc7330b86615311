"""The page of alerts: channels, rules and deliveries, with test messages and second sendings."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from accounts_app.page_policy import person_of, posts_need
from accounts_app.policy import Action, may
from assets_app.queries.clock import database_now
from slicewise_server.alerts.declared_rules import alerts_without_channel
from slicewise_server.alerts.lookups import channel_named, delivery_with
from slicewise_server.alerts.models import AlertRule, Channel, Delivery, DeliveryState
from slicewise_server.alerts.services import resend, send_test
from slicewise_server.alerts.shown_deliveries import subjects_of, with_given_up
from slicewise_server.alerts.unknown_assets import unknown_assets
from slicewise_server.web.listing import page_of_rows, unchanged, version_of
from slicewise_server.web.request_errors import ConflictingRequest


@login_required
@require_safe
def alerts(request: HttpRequest) -> HttpResponse:
    """Render all channels and rules, and the newest deliveries."""
    return render(request, "alerts/alerts.html", _context(request))


@login_required
@require_safe
def alerts_listed(request: HttpRequest) -> HttpResponse:
    """Render the part of the page that polling replaces: everything but the frame."""
    context = _context(request)
    if answer := unchanged(request, context["version"]):
        return answer
    return render(request, "alerts/alerts.html#listed", context)


@login_required
@require_POST
@posts_need(Action.ALERTS)
def channel_test(request: HttpRequest, name: str) -> HttpResponse:
    """Send a test message to a channel."""
    channel = channel_named(name)
    try:
        send_test(channel, user=person_of(request))
    except ConflictingRequest as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"Test message to “{name}” queued. Its delivery is listed below.")
    return redirect("alerts:alerts")


@login_required
@require_POST
@posts_need(Action.ALERTS)
def delivery_resend(request: HttpRequest, delivery_id: UUID) -> HttpResponse:
    """Send a delivery again."""
    delivery = delivery_with(delivery_id)
    try:
        resend(delivery, user=person_of(request))
    except ConflictingRequest as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "The message is queued again.")
    return redirect("alerts:alerts")


def _context(request: HttpRequest) -> dict[str, Any]:
    deliveries = Delivery.objects.select_related("channel")
    if request.GET.get("state") in DeliveryState.values:
        deliveries = deliveries.filter(state=request.GET["state"])
    channels = with_given_up(Channel.objects.all(), database_now())
    ids = {row.channel.name: row.channel.pk for row in channels}
    if request.GET.get("channel") in ids:
        deliveries = deliveries.filter(channel=ids[request.GET["channel"]])
    page = page_of_rows(request, deliveries, size=25)
    subjects = subjects_of(page.items)
    alert_rules = list(AlertRule.objects.select_related("channel"))
    without_channel = alerts_without_channel()
    unknown = unknown_assets(alert_rules)
    polled_values = [
        [
            (channel.pk, channel.active, channel.failures, channel.error, channel.retry_at)
            for channel, *_ in channels
        ],
        [(row.given_up_count, row.more_given_up) for row in channels],
        [(alert_rule.pk, alert_rule.active, alert_rule.assets) for alert_rule in alert_rules],
        [without_channel, unknown],
        [
            (delivery.pk, delivery.state, delivery.tries, delivery.send_at)
            for delivery in page.items
        ],
    ]
    return {
        "channels": channels,
        "alert_rules": alert_rules,
        "without_channel": without_channel,
        "unknown_assets": unknown,
        "page": page,
        "deliveries": [(delivery, subjects.get(delivery.pk)) for delivery in page.items],
        "states": DeliveryState.choices,
        "may_change": may(request.user, Action.ALERTS),
        "may_administer": may(request.user, Action.ADMINISTER),
        "version": version_of(polled_values),
    }
