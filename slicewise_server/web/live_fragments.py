"""Fragments of pages that are polled: an answer only where the markup has changed."""

import re
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from slicewise_server.web.listing import unchanged, version_of

# Markup that differs in every answer: the token of forms, and durations, which the page counts on.
_VOLATILE = re.compile(
    r'<input type="hidden" name="csrfmiddlewaretoken"[^>]*>|<span data-elapsed[^>]*>[^<]*</span>'
)


def is_poll(request: HttpRequest) -> bool:
    """Return whether a script asks for a fragment, in place of the whole page."""
    return bool(request.htmx) and "version" in request.GET  # type: ignore[attr-defined]


def render_live(
    request: HttpRequest, template: str, fragment: str, context: Mapping[str, Any]
) -> HttpResponse:
    """Return the page, or for a poll the fragment alone: nothing where the polling page has the
    same markup. The fragment polls with the ``version`` of the context.
    """
    name = f"{template}#{fragment}"
    markup = render_to_string(name, {**context, "version": ""}, request)
    version = version_of(_VOLATILE.sub("", markup))
    if is_poll(request):
        return unchanged(request, version) or render(request, name, {**context, "version": version})
    return render(request, template, {**context, "version": version})
