"""What all pages say the same way: icons, states, moments, durations."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django import template
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from partitions_app.labels import label_of, selection_label
from partitions_app.looks import Look, look_of
from slicewise import PartitionDefinition
from slicewise.masking import masked_json, masked_text

register = template.Library()
NONE = "\N{EN DASH}"
# The text of Django's get_object_or_404.
_NO_MATCH = re.compile(r"No (\w+) matches the given query\.")


@register.simple_tag
def icon(name: str, extra: str = "") -> SafeString:
    """Render one icon of the sprite, hidden from screen readers since icons are decoration."""
    return format_html(
        '<svg class="icon {}" aria-hidden="true"><use href="{}#{}"/></svg>',
        extra,
        static("vendor/tabler-icons/icons.svg"),
        name,
    )


@register.simple_tag
def badge(state: str | Look) -> SafeString:
    """Render a state as icon and word."""
    look = look_of(state) if isinstance(state, str) else state
    return format_html(
        '<span class="state state-{}">{}{}</span>', look.tone, icon(look.icon), look.label
    )


@register.simple_tag
def partition_url(asset_name: str, key: str) -> str:
    """Return the address of a partition's page; an unpartitioned asset's partition has no key."""
    if key:
        return reverse("assets:partition", args=[asset_name, key])
    return reverse("assets:whole", args=[asset_name])


@register.filter
def label_in(key: str, definition: PartitionDefinition | None) -> str:
    """Return the label of a key text."""
    return label_of(definition, key)


@register.filter
def selection_in(selection: str, definition: PartitionDefinition | None) -> str:
    """Return a selection with labels for its keys."""
    return selection_label(definition, selection)


@register.simple_tag
def moment(at: datetime | None, missing: str = NONE) -> SafeString:
    """Render an instant: UTC as text, which a script turns into the reader's zone."""
    if at is None:
        return format_html("{}", missing)
    at = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}">{} UTC</time>',
        at.isoformat(timespec="milliseconds"),
        at.strftime("%Y-%m-%d %H:%M:%S"),
    )


@register.filter
def pointed(sentence: object) -> SafeString:
    """Render an error sentence; lines that point at a character stay lined up."""
    said, *pointing = str(sentence).split("\n", 1)
    if not pointing:
        return format_html("{}", said)
    return format_html('{}<pre class="pointed">{}</pre>', said, pointing[0])


@register.filter
def not_found(error: object) -> str:
    """Return the text of a 404 in words of the pages: ``Run not found.``"""
    return _NO_MATCH.sub(r"\1 not found.", str(error))


@register.filter
def duration(span: timedelta | float | None) -> str:
    """Render a span of time in its two largest units: ``1 h 5 min``."""
    if span is None:
        return NONE
    seconds = span.total_seconds() if isinstance(span, timedelta) else float(span)
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    days, rest = divmod(round(seconds), 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, left = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (left, "s")]
    first = next(at for at, (count, _) in enumerate(parts) if count)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count)


@register.filter
def lasted(started: datetime | None, ended: datetime | None) -> str:
    """Render how long a run or an attempt took, or has taken so far."""
    if started is None:
        return NONE
    return duration((ended or datetime.now(UTC)) - started)


@register.filter
def masked(text: object) -> str:
    """Return a text that people or their code wrote, without the secrets in the text."""
    return masked_text(str(text))


@register.filter
def masked_items(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return names and values without secrets: a value alone does not say that its name is one."""
    return list(masked_json(values).items())


@register.filter
def percent(part: int, whole: int) -> int:
    """Return the share in percent, rounded down, so that 100 means all."""
    return 100 * part // whole if whole else 0


@register.filter
def in_words(value: object) -> str:
    """Render a detail of an audit entry: lists with commas, and a change as old and new value."""
    if isinstance(value, Mapping):
        shown: dict[str, Any] = masked_json(value)
        if set(shown) == {"from", "to"}:
            return f"{in_words(shown['from'])} → {in_words(shown['to'])}"
        return ", ".join(f"{name} {in_words(each)}" for name, each in shown.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value))
    return "none" if value in (None, "") else masked_text(str(value))
