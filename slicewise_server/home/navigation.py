"""Values for the navigation of every page."""

from typing import Any, NamedTuple

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from accounts_app.policy import opens_admin

# Label, icon and URL name of each page in the navigation.
_PAGES = (
    ("Overview", "home", "home:overview"),
    ("Assets", "database", "assets:assets"),
    ("Runs", "player-play", "assets:runs"),
    ("Backfills", "history", "backfills:backfills"),
    ("Workers", "server", "assets:gateways"),
    ("Bundles", "package", "assets:bundles"),
    ("Alerts", "alert-triangle", "alerts:alerts"),
    ("Lineage", "stack-2", "lineage:lineage"),
)


class NavigationLink(NamedTuple):
    """A link of the navigation; the link to the page that is shown is marked as current."""

    label: str
    icon: str
    url: str
    is_current: bool


def navigation(request: HttpRequest) -> dict[str, Any]:
    """Return the links and whether the user may open the admin site; computed where links show."""
    return {
        "navigation_links": SimpleLazyObject(lambda: _links(request.path)),
        "opens_admin": SimpleLazyObject(lambda: opens_admin(request.user)),
    }


def _links(path: str) -> list[NavigationLink]:
    overview_url = reverse("home:overview")
    links = []
    for label, icon, url_name in _PAGES:
        url = reverse(url_name)
        is_current = path == url if url == overview_url else path.startswith(url)
        links.append(NavigationLink(label, icon, url, is_current))
    return links
