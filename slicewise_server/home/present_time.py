"""The present for templates: by the database's clock, and once for each page."""

from collections.abc import Callable
from datetime import datetime
from functools import cache

from django.http import HttpRequest

from assets_app.queries.clock import database_now


def present_time(_: HttpRequest) -> dict[str, Callable[[], datetime]]:
    """Return ``now``, which asks the database when a template first uses the value."""
    return {"now": cache(database_now)}
