"""The folders of definition files: versions, and what keeps files from being loaded."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from assets_app.queries import pages


@login_required
@require_safe
def bundles(request: HttpRequest) -> HttpResponse:
    """All bundles, the broken ones with their tracebacks."""
    found = list(pages.bundles())
    unknown = pages.unknown_names()
    return render(request, "assets_app/bundles.html", {"bundles": found, "unknown_names": unknown})
