"""Tags and filters of all pages: icons, states, instants, durations."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django import template
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from partitions_app.labels import label_of, selection_label
from partitions_app.state_badges import StateBadge, badge_of
from slicewise import PartitionDefinition
from slicewise.texts import masked_json, masked_text

register = template.Library()
NONE = "\N{EN DASH}"
_NO_BREAK = "\N{NO-BREAK SPACE}"
_CODE_SPAN = re.compile(r"`([^`]+)`")
_COUNT = re.compile(r" \(\d+ partitions\)$")
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
def badge(state: str | StateBadge) -> SafeString:
    """Render a state as an icon and a word."""
    look = badge_of(state) if isinstance(state, str) else state
    return format_html(
        '<span class="state state-{}">{}{}</span>', look.tone, icon(look.icon), look.label
    )


@register.simple_tag
def state_icon(state: str) -> SafeString:
    """Render the icon of a state, for a text that says more than the label."""
    return icon(badge_of(state).icon)


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
    """Return a selection with labels in place of keys."""
    return selection_label(definition, selection)


@register.filter
def without_count(selection: str) -> str:
    """Return the description of a run's partitions without the count at the end, which a page shows
    beside the description.
    """
    return _COUNT.sub("", selection)


@register.simple_tag
def moment(at: datetime | None, missing: str = NONE, form: str = "") -> SafeString:
    """Render an instant as text in UTC, which a script converts to the reader's zone.

    ``form`` is the short form that the script writes: ``ago``, ``hour`` or ``day``.
    """
    if at is None:
        return format_html("{}", missing)
    at = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}"{}>{} UTC</time>',
        at.isoformat(timespec="milliseconds"),
        format_html(' data-form="{}"', form) if form else "",
        at.strftime("%Y-%m-%d %H:%M:%S"),
    )


@register.simple_tag
def ago(at: datetime | None, missing: str = NONE) -> SafeString:
    """Render an instant of a list: a script shows the time that has passed, the exact time on
    hover.
    """
    return moment(at, missing, "ago")


@register.filter
def breakable(name: str) -> SafeString:
    """Render a name that may break after underscores, so that a narrow page does not break the name
    within a word or a time.
    """
    return format_html_join(mark_safe("_<wbr>"), "{}", ((word,) for word in name.split("_")))


@register.filter
def pointed(sentence: object) -> SafeString:
    """Render an error sentence; lines that point at a character stay aligned."""
    sentence_text, *pointer_lines = str(sentence).split("\n", 1)
    if not pointer_lines:
        return format_html("{}", sentence_text)
    return format_html('{}<pre class="pointed">{}</pre>', sentence_text, pointer_lines[0])


@register.filter
def code_spans(text: object) -> SafeString:
    """Render a text in which backticks enclose code, as descriptions of the API have them."""
    parts = _CODE_SPAN.split(str(text or ""))
    spans = [
        format_html("<code>{}</code>" if index % 2 else "{}", part)
        for index, part in enumerate(parts)
    ]
    return format_html_join("", "{}", ((span,) for span in spans))


@register.filter
def not_found(error: object) -> str:
    """Return the text of a 404 in words of the pages: ``Run not found.``"""
    return _NO_MATCH.sub(r"\1 not found.", str(error))


@register.filter
def duration(span: timedelta | float | None) -> str:
    """Render a duration in the two largest units: ``1 h 5 min``. A number and its unit are in one
    line.
    """
    if span is None:
        return NONE
    seconds = span.total_seconds() if isinstance(span, timedelta) else float(span)
    if seconds < 10:
        return f"{max(seconds, 0):.1f}{_NO_BREAK}s"
    days, seconds_left = divmod(round(seconds), 86_400)
    hours, seconds_left = divmod(seconds_left, 3_600)
    minutes, second_count = divmod(seconds_left, 60)
    unit_counts = [(days, "d"), (hours, "h"), (minutes, "min"), (second_count, "s")]
    first = next(index for index, (count, _) in enumerate(unit_counts) if count)
    shown_counts = [(count, unit) for count, unit in unit_counts[first : first + 2] if count]
    return " ".join(f"{count}{_NO_BREAK}{unit}" for count, unit in shown_counts)


def rounded_duration(span: timedelta) -> str:
    """Render an estimated duration in whole minutes, or tens of minutes if the estimate is longer
    than an hour: ``about 55 min``, ``about 3 h 20 min``.
    """
    minutes = span.total_seconds() / 60
    if minutes < 1:
        return "less than 1 min"
    step = 1 if minutes < 60 else 10 if minutes < 24 * 60 else 60
    return f"about {duration(timedelta(minutes=step * round(minutes / step)))}"


@register.filter
def lasted(started: datetime | None, ended: datetime | None) -> str:
    """Render the duration of a run or an attempt, until now for an unfinished one."""
    if started is None:
        return NONE
    return duration((ended or datetime.now(UTC)) - started)


@register.simple_tag
def took(started: datetime | None, ended: datetime | None) -> SafeString:
    """Render the duration of a run or an attempt; a script counts an unfinished one onwards."""
    if started is None or ended is not None:
        return format_html("{}", lasted(started, ended))
    elapsed = max((datetime.now(UTC) - started).total_seconds(), 0.0)
    return format_html('<span data-elapsed="{}">{}</span>', f"{elapsed:.1f}", duration(elapsed))


@register.filter
def masked(text: object) -> str:
    """Return a text written by people or by code of people, without the secrets in the text."""
    return masked_text(str(text))


@register.filter
def masked_items(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return names and values without secrets: only the name tells that a value is a secret."""
    return list(masked_json(values).items())


@register.filter
def value_at(values: Mapping[Any, Any] | str, key: object) -> Any:
    """Return the value of a key, or None. A name that a page lacks counts as no values."""
    return values.get(key) if isinstance(values, Mapping) else None


@register.filter
def percent(count: int, total: int) -> int:
    """Return the share in percent, rounded down, so that 100 means all."""
    return 100 * count // total if total else 0


@register.filter
def detail_label(name: str) -> str:
    """Render the name of a detail of an audit entry in words; a run group is a request."""
    return "request" if name == "group" else name.replace("_", " ")


@register.filter
def in_words(value: object) -> str:
    """Render a detail of an audit entry: lists with commas, and a change as old and new value."""
    if isinstance(value, Mapping):
        masked_value: dict[str, Any] = masked_json(value)
        if set(masked_value) == {"from", "to"}:
            return f"{in_words(masked_value['from'])} → {in_words(masked_value['to'])}"
        return ", ".join(f"{name} {in_words(member)}" for name, member in masked_value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value in (None, "") else masked_text(str(value))
