"""Schedules as pages say them: after which assets and times, and how long until then."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.urls import reverse
from django.utils import timezone as clock
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from assets_app.scheduling.words import term_in_words
from partitions_app.templatetags.slicewise_pages import duration
from slicewise.schedules import is_time

register = template.Library()
_PATIENCE = timedelta(minutes=1)


@register.simple_tag
def after_assets(expression: Mapping[str, Any], timezone: str | None = None) -> SafeString:
    """An expression over assets and times in words, with links: ``hourly and (daily or weekly)``.

    ``timezone`` is that of times that have none of their own.
    """
    if expression["kind"] == "asset":
        name = expression["name"]
        return format_html('<a href="{}">{}</a>', reverse("assets:asset", args=[name]), name)
    if is_time(expression):
        return format_html("{}", term_in_words(expression, timezone or "UTC"))
    word = " or " if expression["kind"] == "any" else " and "
    parts = ((_enclosed(part, timezone),) for part in expression["of"])
    return format_html_join(word, "{}", parts)


def _enclosed(part: Mapping[str, Any], timezone: str | None) -> SafeString:
    said = after_assets(part, timezone)
    return format_html("({})", said) if "of" in part else said


@register.filter
def from_now(moment: datetime | None) -> str:
    """``in 3 h``, ``now``; of what is overdue, by how much: ``5 min``."""
    if moment is None:
        return ""
    span = moment - clock.now()
    if span > timedelta():
        return f"in {duration(span)}"
    return duration(-span) if is_overdue(moment) else "now"


@register.filter
def is_overdue(moment: datetime) -> bool:
    """Whether a tick should have been handled long ago, as ticks go."""
    return clock.now() - moment > _PATIENCE
