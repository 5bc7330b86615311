"""The page of bundles: versions, and errors that keep files from being loaded."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from assets_app.queries import pages
from assets_app.queries.clock import database_now

# A large bundle takes minutes to load, and the others are not checked meanwhile.
_LATE_PERIODS = 20


@login_required
@require_safe
def bundles(request: HttpRequest) -> HttpResponse:
    """Render all bundles, broken bundles with tracebacks."""
    rows = pages.bundle_rows()
    sync_seconds: Any = settings.CELERY_BEAT_SCHEDULE["sync bundles"]["schedule"]
    last_check = pages.last_bundle_check(rows)
    late_before = database_now() - _LATE_PERIODS * timedelta(seconds=sync_seconds)
    context = {
        "rows": rows,
        "unknown_names": pages.unknown_names(),
        "sync_seconds": sync_seconds,
        "last_check": last_check,
        "is_sync_late": last_check is not None and last_check < late_before,
    }
    return render(request, "assets_app/bundles.html", context)
