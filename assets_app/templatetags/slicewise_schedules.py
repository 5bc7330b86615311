"""Schedules as pages say them: after which assets, and how long until then."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from partitions_app.templatetags.slicewise_pages import duration

register = template.Library()
_PATIENCE = timedelta(minutes=1)


@register.simple_tag
def after_assets(expression: Mapping[str, Any]) -> SafeString:
    """An expression over assets in words, with links: ``hourly and (daily or weekly)``."""
    if expression["kind"] == "asset":
        name = expression["name"]
        return format_html('<a href="{}">{}</a>', reverse("assets:asset", args=[name]), name)
    word = " or " if expression["kind"] == "any" else " and "
    return format_html_join(word, "{}", ((_enclosed(part),) for part in expression["of"]))


def _enclosed(part: Mapping[str, Any]) -> SafeString:
    said = after_assets(part)
    return said if part["kind"] == "asset" else format_html("({})", said)


@register.filter
def from_now(moment: datetime | None) -> str:
    """``in 3 h``, ``now``; of what is overdue, by how much: ``5 min``."""
    if moment is None:
        return ""
    span = moment - timezone.now()
    if span > timedelta():
        return f"in {duration(span)}"
    return duration(-span) if is_overdue(moment) else "now"


@register.filter
def is_overdue(moment: datetime) -> bool:
    """Whether a tick should have been handled long ago, as ticks go."""
    return timezone.now() - moment > _PATIENCE
