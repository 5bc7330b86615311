"""Tags and filters for schedules: upstream assets and times in words, and the time until a tick."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from assets_app.models import Schedule
from assets_app.queries.ticks import is_tick_overdue
from assets_app.scheduling.descriptions import cron_in_words, term_in_words
from partitions_app.templatetags.slicewise_pages import duration

register = template.Library()


@register.simple_tag
def after_assets(expression: Mapping[str, Any], timezone: str | None = None) -> SafeString:
    """Render an expression over assets and times in words, with links: ``hourly and (daily or
    weekly)``.

    ``timezone`` applies to times without a time zone.
    """
    if expression["kind"] == "asset":
        name = expression["name"]
        return format_html('<a href="{}">{}</a>', reverse("assets:asset", args=[name]), name)
    if "of" not in expression:
        return format_html("{}", term_in_words(expression, timezone or "UTC"))
    word = " or " if expression["kind"] == "any" else " and "
    operands = ((_in_parentheses(operand, timezone),) for operand in expression["of"])
    return format_html_join(word, "{}", operands)


@register.simple_tag
def schedule_in_words(schedule: Schedule) -> SafeString:
    """Render the schedule of a list in words: ``every day at 06:00 (Europe/Berlin)``; or as the
    schedule is written, where words are no clearer; empty without a rule.
    """
    if schedule.rule is None:
        return SafeString("")
    timezone, term = schedule.rule.get("timezone") or "UTC", schedule.rule["schedule"]
    if not schedule.by_time:
        return format_html("Triggered by {}", after_assets(term, timezone))
    if term["kind"] == "timedelta":
        return format_html("{}", term_in_words(term, timezone))
    if words := cron_in_words(term["expression"]):
        return format_html("{} ({})", words, timezone)
    return format_html("<code>{}</code> ({})", term["expression"], timezone)


def _in_parentheses(operand: Mapping[str, Any], timezone: str | None) -> SafeString:
    text = after_assets(operand, timezone)
    return format_html("({})", text) if "of" in operand else text


@register.filter
def from_now(moment: datetime | None, now: datetime) -> str:
    """Render the time until an instant: ``in 3 h``, ``now``; the delay if overdue: ``5 min``."""
    if moment is None:
        return ""
    span = moment - now
    if span > timedelta():
        return f"in {duration(span)}"
    return duration(-span) if is_tick_overdue(moment, now) else "now"


register.filter("is_overdue", is_tick_overdue)
