"""The page of bundles: versions, and errors that keep files from being loaded."""

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from assets_app.queries import pages


@login_required
@require_safe
def bundles(request: HttpRequest) -> HttpResponse:
    """Render all bundles, broken bundles with tracebacks."""
    context = {
        "rows": pages.bundle_rows(),
        "unknown_names": pages.unknown_names(),
        "sync_seconds": settings.CELERY_BEAT_SCHEDULE["sync bundles"]["schedule"],
    }
    return render(request, "assets_app/bundles.html", context)
