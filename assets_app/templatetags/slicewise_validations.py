"""A tag for the outcomes of the validations of a run."""

from collections.abc import Mapping

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from assets_app.queries.validation_outcomes import Outcomes
from partitions_app.templatetags.slicewise_pages import NONE, badge

register = template.Library()


@register.simple_tag
def validation_outcomes(outcomes: Mapping[int, Outcomes], run_id: int | None) -> SafeString:
    """Render the number of each outcome of the run's validations, as a link to the run."""
    counts = outcomes.get(run_id) if run_id is not None else None
    if not counts:
        return SafeString(NONE)
    texts = format_html_join(
        "", "<span>{} {}</span>", ((badge(outcome), count) for outcome, count in counts)
    )
    return format_html(
        '<a class="d-inline-flex flex-wrap gap-2 text-reset" href="{}" title="{}">{}</a>',
        reverse("assets:run", args=[run_id]),
        f"Validations of run {run_id}",
        texts,
    )
