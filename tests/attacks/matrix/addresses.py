"""The addresses of the site, read from the URL conf: pages, API and admin site."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import URLPattern, URLResolver, get_resolver


def all_routes() -> list[str]:
    """Return the route of every view, as the URL conf writes it: ``runs/<int:pk>/cancel/``."""
    return list(_routes_below(get_resolver(), ""))


def _routes_below(resolver: URLResolver, prefix: str) -> Iterator[str]:
    for pattern in resolver.url_patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLPattern):
            yield route
        else:
            yield from _routes_below(pattern, route)
