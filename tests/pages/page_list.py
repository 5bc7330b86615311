"""Every page of the server by route, and the addresses at which tests and pictures open the page.

An address names things of a catalogue, as ``{asset}``: a catalogue without the thing has no such
page. Routes are written as in the URL conf; `test_page_list.py` compares the two.
"""

from collections.abc import Iterator, Mapping
from string import Formatter

Things = Mapping[str, object]

_TABS = ("runs", "schedule", "neighbours", "validations", "settings", "definition")
_MODELS = (
    "accounts_app/auditentry", "accounts_app/grant", "accounts_app/user", "assets_app/asset",
    "assets_app/bundle", "assets_app/gateway", "assets_app/materialization", "assets_app/run",
    "auth/group", "axes/accessattempt", "axes/accesslog", "backfills_app/backfill",
    "knox/authtoken", "partitions_app/partitiondefinition", "partitions_app/runtimepartition",
)  # fmt: skip

PAGES: dict[str, tuple[str, ...]] = {
    "": ("/", "/?span=7d"),
    "search/": ("/search/?q={word}",),
    "help/partitions/": ("/help/partitions/",),
    "audit/": ("/audit/",),
    "account/": ("/account/",),
    "assets/": ("/assets/",),
    "assets/graph/all/": ("/assets/graph/all/",),
    "assets/<str:name>/": (
        *(f"/assets/{{asset}}/?tab={tab}" for tab in _TABS),
        *(f"/assets/{{asset}}/?zoom={zoom}&at={{day}}" for zoom in ("month", "year", "all")),
        *(
            f"/assets/{{hourly_asset}}/?zoom={zoom}&at={{hour}}"
            for zoom in ("day", "month", "year", "all")
        ),
        "/assets/{product_asset}/", "/assets/{product_asset}/?zoom=month&at={product_day}",
        "/assets/{scheduled_asset}/?tab=schedule", "/assets/{found_asset}/",
    ),
    "assets/<str:name>/impact/": ("/assets/{asset}/impact/?selection={selection}",),
    "assets/<str:name>/materialize/": ("/assets/{asset}/materialize/",),
    "assets/<str:name>/report-write/": ("/assets/{external_asset}/report-write/",),
    "assets/<str:name>/partitions/": ("/assets/{whole_asset}/partitions/",),
    "assets/<str:name>/partitions/<path:key>/": (
        "/assets/{asset}/partitions/{materialized_key}/",
        "/assets/{asset}/partitions/{failed_key}/",
    ),
    "runs/": ("/runs/", "/runs/?by=request"),
    "runs/retry/": ("/runs/retry/?run={failed_run}",),
    "runs/<int:pk>/": ("/runs/{failed_run}/", "/runs/{running_run}/", "/runs/999999999/"),
    "runs/<int:pk>/partitions/": ("/runs/{failed_run}/partitions/",),
    "runs/<int:pk>/log/search/": ("/runs/{failed_run}/log/search/?q=rows",),
    "runs/<int:pk>/cancel/": ("/runs/{running_run}/cancel/",),
    "runs/<int:pk>/retry/": ("/runs/{failed_run}/retry/",),
    "runs/<int:pk>/rerun/": ("/runs/{failed_run}/rerun/",),
    "backfills/": ("/backfills/",),
    "backfills/new/": ("/backfills/new/", "/backfills/new/?{backfill_fields}"),
    "backfills/<int:pk>/": (
        "/backfills/{backfill}/", "/backfills/{backfill}/?zoom=all", "/backfills/{ended_backfill}/",
    ),
    "backfills/<int:pk>/change/": ("/backfills/{backfill}/change/",),
    "backfills/<int:pk>/cancel/": ("/backfills/{backfill}/cancel/",),
    "backfills/<int:pk>/retry/": ("/backfills/{backfill}/retry/",),
    "backfills/<int:pk>/delete/": ("/backfills/{ended_backfill}/delete/",),
    "gateways/": ("/gateways/",),
    "bundles/": ("/bundles/",),
    "alerts/": ("/alerts/",),
    "alerts/new-channel/": ("/alerts/new-channel/",),
    "alerts/channels/<str:name>/": ("/alerts/channels/{channel}/",),
    "alerts/channels/<str:name>/delete/": ("/alerts/channels/{channel}/delete/",),
    "alerts/new-rule/": ("/alerts/new-rule/",),
    "alerts/rules/<str:name>/": ("/alerts/rules/{alert_rule}/",),
    "alerts/rules/<str:name>/delete/": ("/alerts/rules/{alert_rule}/delete/",),
    "lineage/": ("/lineage/", "/lineage/?tab=received", "/lineage/?tab=edges"),
    "api/docs/": ("/api/docs/",),
}  # fmt: skip

# Pages that are opened without a session.
SIGNED_OUT = {"sign-in/": ("/sign-in/",), "admin/login/": ("/admin/login/",)}

ADMIN: dict[str, tuple[str, ...]] = {
    "admin/": ("/admin/",),
    **{f"admin/{model}/": (f"/admin/{model}/",) for model in _MODELS},
    "admin/accounts_app/user/add/": ("/admin/accounts_app/user/add/",),
    "admin/accounts_app/grant/add/": ("/admin/accounts_app/grant/add/",),
    "admin/accounts_app/user/<path:object_id>/change/": (
        "/admin/accounts_app/user/{user}/change/",
    ),
    "admin/assets_app/asset/<path:object_id>/change/": (
        "/admin/assets_app/asset/{asset_id}/change/",
    ),
    "admin/assets_app/run/<path:object_id>/change/": (
        "/admin/assets_app/run/{failed_run}/change/",
    ),
    "admin/backfills_app/backfill/<path:object_id>/change/": (
        "/admin/backfills_app/backfill/{backfill}/change/",
    ),
    "admin/auth/group/<path:object_id>/delete/": ("/admin/auth/group/{group}/delete/",),
    "admin/auth/group/<path:object_id>/history/": ("/admin/auth/group/{group}/history/",),
}

# Routes that answer GET and are left out, each with the reason.
_FRAGMENT = "Answers a fragment of a page that is listed; the page shows the fragment."
_LIKE_OTHERS = "A page of Django with the parts of the same page of another model, which is listed."
_SAME_QUESTION = "Asks in a card that the page for canceling shows too."
_LEADS_ON = "Leads to another page."
LEFT_OUT: dict[str, str] = {
    **dict.fromkeys(
        (
            "going-on/", "alerts/listed/", "assets/<str:name>/selected/", "backfills/listed/",
            "gateways/listed/", "lineage/assets/<str:name>/", "lineage/listed/", "runs/listed/",
            *(
                f"backfills/<int:pk>/{fragment}/"
                for fragment in ("progress", "details", "cells", "selected", "record")
            ),
            *(f"runs/<int:pk>/{fragment}/" for fragment in ("status", "log", "more")),
        ),
        _FRAGMENT,
    ),
    "assets/graph/": "Shows the graph as the second address does, or an asset of the name `graph`.",
    "runs/<int:pk>/log/file/": "Sends a file of text.",
    "backfills/<int:pk>/pause/": _SAME_QUESTION,
    "backfills/<int:pk>/resume/": _SAME_QUESTION,
    "account/tokens/": _LEADS_ON,
    "metrics": "Answers Prometheus in its own format.",
    r"api/^[\s\S]*\Z": "Answers with problem details, as JSON.",
    "admin/password_change/": _LEADS_ON,
    "admin/password_change/done/": "No page leads there: the page `account/` changes passwords.",
    "admin/autocomplete/": "Answers with JSON.",
    "admin/jsi18n/": "Answers with a script.",
    "admin/r/<path:content_type_id>/<path:object_id>/": _LEADS_ON,
    "admin/accounts_app/user/<id>/password/": _LIKE_OTHERS,
    "admin/(?P<url>.*)$": "Answers that there is no such page.",
}  # fmt: skip
# The same by the end of the route, for each model of the admin site.
_LEFT_OUT_ENDS = {
    "/add/": _LIKE_OTHERS,
    "/<path:object_id>/change/": _LIKE_OTHERS,
    "/<path:object_id>/delete/": _LIKE_OTHERS,
    "/<path:object_id>/history/": _LIKE_OTHERS,
    "/<path:object_id>/": _LEADS_ON,
    r")/$": "Shows a part of the index of the admin site.",
}


def reason_left_out(route: str) -> str:
    """Return why a route has no page in the list; empty if no reason is known."""
    if route in LEFT_OUT or not route.startswith("admin/"):
        return LEFT_OUT.get(route, "")
    return next((reason for end, reason in _LEFT_OUT_ENDS.items() if route.endswith(end)), "")


def addresses(pages: Mapping[str, tuple[str, ...]], things: Things) -> list[str]:
    """Return the addresses of the pages whose things the catalogue has, in the order of pages."""
    return [
        template.format_map(things)
        for templates in pages.values()
        for template in templates
        if names_in(template) <= things.keys()
    ]


def names_in(template: str) -> set[str]:
    """Return the names of the things that an address names."""
    return set(_names(template))


def _names(template: str) -> Iterator[str]:
    return (name for _, name, _, _ in Formatter().parse(template) if name is not None)
