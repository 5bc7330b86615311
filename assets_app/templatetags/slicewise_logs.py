"""Tags for logs: markup inside of a ``pre``, in which line breaks of a template would show."""

from collections.abc import Sequence

from django import template
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from assets_app.models import RunAttempt
from assets_app.queries.log_attempts import LogChunk
from assets_app.queries.log_search import LogPassage
from partitions_app.templatetags.slicewise_pages import moment
from slicewise.texts import masked_text

register = template.Library()
_GAP = '<span class="log-gap">⋯</span>'


@register.simple_tag
def log_text(chunks: Sequence[LogChunk]) -> SafeString:
    """Render the chunks of a log, with a heading before the output of each attempt."""
    parts = (
        (_heading(chunk.attempt, level=3) if chunk.attempt else "")
        + escape(masked_text(chunk.text))
        for chunk in chunks
    )
    return mark_safe("".join(parts))  # noqa: S308  (all text is escaped)


@register.simple_tag
def log_passages(passages: Sequence[LogPassage], is_marked: bool) -> SafeString:
    """Render the lines that a search has found; where lines around the matches are shown too, the
    matching lines and the gaps are marked.
    """
    parts: list[str] = []
    for passage in passages:
        gap = _GAP if is_marked else ""
        parts.append(_heading(passage.attempt, level=2) if passage.is_first else gap)
        for line in passage.lines:
            text = escape(line.text)
            parts.append(f"<mark>{text}</mark>\n" if is_marked and line.is_match else f"{text}\n")
    return mark_safe("".join(parts))  # noqa: S308  (all text is escaped)


@register.simple_tag
def ended_state(attempt: RunAttempt | None) -> SafeString:
    """Render the state of an attempt in place of the state in the heading that the page has."""
    if attempt is None:
        return SafeString()
    return format_html(
        '<span id="attempt-{}-state" hx-swap-oob="true">{}</span>',
        attempt.number,
        _state(attempt),
    )


def _heading(attempt: RunAttempt, *, level: int) -> SafeString:
    """Render the heading of an attempt; ``level`` is the level of the heading on its page."""
    return format_html(
        '<span class="log-attempt" role="heading" aria-level="{}">Attempt {}, started {}, '
        '<span id="attempt-{}-state">{}</span></span>',
        level,
        attempt.number,
        moment(attempt.started_at),
        attempt.number,
        _state(attempt),
    )


def _state(attempt: RunAttempt) -> str:
    return attempt.get_outcome_display().lower() if attempt.outcome else "running"
