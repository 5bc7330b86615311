"""The rules of the site: the roles that may read at an address, and the roles that may write.

The rules are written from the guides, not from the code: a view that disagrees fails the matrix. An
address has one rule, by its route as the URL conf writes the route. The routes of the admin site
follow from a table of its models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.attacks.matrix.people_and_records import DAY, Things

# ---------------------------------------------------------------- people
OUTSIDE = frozenset({"anonymous", "deactivated"})
ADMINS = frozenset({"admin", "superuser"})
EDITORS = ADMINS | {"editor"}
OPERATORS = EDITORS | {"operator"}
# Whoever is signed in. `staff` is a viewer whom the admin site lets in to look; `granted` is a
# viewer with the permission to backfill the asset `lent`.
READERS = OPERATORS | {"viewer", "granted", "staff"}
SITE = ADMINS | {"staff"}
NOBODY: frozenset[str] = frozenset()
EVERYBODY = READERS | OUTSIDE

Body = Callable[[Things], Mapping[str, Any]]


def nothing(_: Things) -> Mapping[str, Any]:
    """Return the empty body."""
    return {}


@dataclass(frozen=True, kw_only=True)
class Write:
    """A request that writes: the roles that may send the request, and the right answers."""

    who: frozenset[str]
    body: Body = nothing
    # Whether `granted` may write where the asset is `lent`.
    by_grant: bool = False
    # Whether the body says which asset: without it, it is not known whether the grant is enough.
    asset_in_body: bool = False
    changes: bool = True
    # Of whom something changes, where that is not everybody who may send it.
    changed_by: frozenset[str] = EVERYBODY
    answers: frozenset[int] = frozenset({200, 201, 204, 302})
    # To whoever may not. Where a row belongs to one person, nothing is there for others.
    refusal: int = 403


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The rights at an address, by method. Methods that no rule names are not allowed (405)."""

    reads: frozenset[str] | None = READERS
    writes: Mapping[str, Write] = field(default_factory=dict)
    # Which thing the address names, and what follows the address.
    of: str = ""
    query: str = ""
    answers: frozenset[int] = frozenset({200, 204, 286})
    # Whether strangers may come in; and where they are turned to, if not to sign in.
    for_strangers: bool = False
    turned_to: str = ""
    # Open to strangers, without a rule for each method: the statuses that any request may have.
    open_to_all: frozenset[int] = frozenset()


Rules = dict[str, Rule]


def readable(*routes: str, of: str = "", query: str = "") -> Rules:
    """Return the rules of addresses that are there to be read."""
    return {route: Rule(of=of, query=query) for route in routes}


def written(of: str, write: Write, *, method: str = "POST", is_asked_first: bool = False) -> Rule:
    """Return the rule of an address that writes, or asks with GET before it writes."""
    return Rule(of=of, reads=READERS if is_asked_first else None, writes={method: write})


def asked(of: str, write: Write) -> Rule:
    """Return the rule of a page that asks with GET and writes with POST."""
    return written(of, write, is_asked_first=True)


def may_materialize(**body: Any) -> Write:
    return Write(who=OPERATORS, body=lambda _: body)


def may_edit(**body: Any) -> Write:
    return Write(who=EDITORS, body=lambda _: body)


def may_backfill(body: Body = nothing, *, changes: bool = True, named: bool = False) -> Write:
    return Write(who=OPERATORS, by_grant=True, body=body, changes=changes, asset_in_body=named)


def _backfill_request(things: Things) -> Mapping[str, Any]:
    return {"asset": things["asset"], "start": "2013-06-01", "end": "2013-06-02"}


def _bulk(things: Things) -> Mapping[str, Any]:
    return {"action": "pause", "backfills": [things["going"]]}


def _backfill_form(things: Things) -> Mapping[str, Any]:
    words = {"existing": "missing_and_failed", "order": "oldest", "downstream": "none"}
    return {**_backfill_request(things), **words, "by": "asset", "max_active_runs": 3}


# ---------------------------------------------------------------- the API
_ONE_ASSET = "api/v1/assets/<str:name>/"
_LOOK_AT_DATA = Write(
    who=OPERATORS, body=lambda _: {"selection": DAY}, changes=False, answers=frozenset({200, 400})
)
API_ASSETS: Rules = {
    **readable("api/v1/assets/", "api/v1/asset-graph/", "api/v1/asset-graph/states/"),
    **readable(
        _ONE_ASSET,
        _ONE_ASSET + "partitions/",
        _ONE_ASSET + "partitions/orphans/",
        _ONE_ASSET + "ticks/",
        of="asset",
    ),
    _ONE_ASSET + "partitions/verify/": written("asset", _LOOK_AT_DATA),
    _ONE_ASSET + "partitions/orphans/remove/": written(
        "asset",
        Write(
            who=EDITORS,
            body=lambda _: {"ids": [1]},
            changes=False,
            answers=frozenset({200, 400}),
        ),
    ),
    _ONE_ASSET + "partitions/forget/": written("asset", may_edit(selection="2013-01-02")),
    _ONE_ASSET + "materialize/": written("asset", may_materialize(selection="2013-06-01")),
    _ONE_ASSET + "events/": written("told", may_materialize(selection=DAY)),
    _ONE_ASSET + "runtime-partitions/": written("found", may_edit(keys=["UA"])),
    _ONE_ASSET + "runtime-partitions/remove/": written("found", may_edit(keys=["AA"])),
    _ONE_ASSET + "pause/": written("asset", may_edit()),
    _ONE_ASSET + "unpause/": written("held", may_edit()),
}

_ONE_RUN = "api/v1/runs/<int:pk>/"
API_RUNS: Rules = {
    **readable("api/v1/runs/", "api/v1/gateways/"),
    **readable(_ONE_RUN, _ONE_RUN + "log/", _ONE_RUN + "partitions/", of="failed_run"),
    _ONE_RUN + "cancel/": written("going_run", may_materialize()),
    _ONE_RUN + "retry/": written("failed_run", may_materialize()),
    _ONE_RUN + "rerun/": written("failed_run", may_materialize()),
    "api/v1/runs/retry/": written(
        "", Write(who=OPERATORS, body=lambda things: {"runs": [things["failed_run"]]})
    ),
}

_ONE_BACKFILL = "api/v1/backfills/<int:pk>/"
API_BACKFILLS: Rules = {
    "api/v1/backfills/": asked("", may_backfill(_backfill_request, named=True)),
    "api/v1/backfills/preview/": written(
        "", may_backfill(_backfill_request, changes=False, named=True)
    ),
    "api/v1/backfills/bulk/": written("", may_backfill(_bulk, named=True)),
    **readable(_ONE_BACKFILL + "partitions/", _ONE_BACKFILL + "outcome/", of="made"),
    _ONE_BACKFILL: Rule(
        of="failed",
        writes={
            "PATCH": may_backfill(lambda _: {"description": "changed"}),
            "DELETE": may_backfill(),
        },
    ),
    _ONE_BACKFILL + "cancel/": written("going", may_backfill()),
    _ONE_BACKFILL + "pause/": written("going", may_backfill()),
    _ONE_BACKFILL + "resume/": written("paused", may_backfill()),
    _ONE_BACKFILL + "retry-failed/": written("failed", may_backfill()),
    _ONE_BACKFILL + "clone/": written(
        "made", may_backfill(lambda _: {"existing": "all"}, named=True)
    ),
}

API_OTHERS: Rules = {
    **readable("api/v1/schema/", "api/docs/"),
    "api/v1/health/": Rule(open_to_all=frozenset({200, 405})),
    # For this host, whoever is signed in; the token of a person is none of metrics.
    # tests/metrics/test_access.py has all other clients.
    "metrics": Rule(open_to_all=frozenset({200, 401, 405})),
    # A token is asked for with a name and a password, and given back by its holder.
    "api/v1/tokens/": Rule(
        reads=None,
        writes={
            "POST": Write(who=EVERYBODY, changes=False, answers=frozenset({400})),
            "DELETE": Write(who=READERS, answers=frozenset({204, 409})),
        },
    ),
    # Where nothing is, nothing needs protection.
    r"api/^[\s\S]*\Z": Rule(open_to_all=frozenset({200, 404})),
}


def _channel_fields(_: Things) -> Mapping[str, Any]:
    return {"name": "new", "kind": "webhook", "address": "https://hooks.example/y"}


def _rule_fields(things: Things) -> Mapping[str, Any]:
    return {"name": "new", "channel": things["channel"]}


def _lineage_event(things: Things) -> Mapping[str, Any]:
    facet = {"slicewise_partitions": {"selection": DAY}}
    return {
        "eventType": "COMPLETE",
        "eventTime": "2024-07-01T04:00:00Z",
        "producer": "urn:test",
        "schemaURL": "urn:test",
        "run": {"runId": "01906bd5-0a00-7c3e-8d62-111111111111"},
        "job": {"namespace": "imports", "name": "orders"},
        "outputs": [{"namespace": "slicewise", "name": things["told"], "facets": facet}],
    }


_LINEAGE = Rule(reads=None, writes={"POST": Write(who=OPERATORS, body=_lineage_event)})


def _rule_form(things: Things) -> Mapping[str, Any]:
    return {**_rule_fields(things), "gather_seconds": 5}


_ONE_CHANNEL, _ONE_RULE = "api/v1/channels/<str:name>/", "api/v1/alert-rules/<str:name>/"
API_ALERTS: Rules = {
    **readable("api/v1/events/", "api/v1/deliveries/"),
    "api/v1/lineage/": _LINEAGE,
    "api/v1/lineage": _LINEAGE,
    "api/v1/channels/": Rule(writes={"POST": Write(who=ADMINS, body=_channel_fields)}),
    _ONE_CHANNEL: Rule(
        of="channel",
        writes={
            "PATCH": Write(who=ADMINS, body=lambda _: {"active": False}),
            "DELETE": Write(who=ADMINS),
        },
    ),
    _ONE_CHANNEL + "test/": written("used_channel", Write(who=EDITORS, answers=frozenset({202}))),
    "api/v1/alert-rules/": Rule(writes={"POST": Write(who=EDITORS, body=_rule_fields)}),
    _ONE_RULE: Rule(
        of="alert_rule",
        writes={
            "PATCH": Write(who=EDITORS, body=lambda _: {"gather_seconds": 5}),
            "DELETE": Write(who=EDITORS),
        },
    ),
    "api/v1/deliveries/<uuid:delivery_id>/resend/": written(
        "delivery", Write(who=EDITORS, answers=frozenset({202}))
    ),
}

# ---------------------------------------------------------------- pages
PAGES_ACCOUNTS: Rules = {
    "sign-in/": Rule(open_to_all=frozenset({200, 302, 405})),
    # Ends a session, also the session of an account that is not active any more.
    "sign-out/": Rule(
        reads=None,
        for_strangers=True,
        writes={"POST": Write(who=EVERYBODY, changed_by=READERS | {"deactivated"})},
    ),
    "account/": asked("", Write(who=READERS, changes=False)),
    "account/sign-out-everywhere/": written("", Write(who=READERS)),
    # A GET leads to the page of the account, where the form is.
    "account/tokens/": Rule(
        writes={"POST": Write(who=READERS, changes=False)}, answers=frozenset({302})
    ),
    # The token of `operator`: an admin revokes others on the admin site.
    "account/tokens/<str:key>/revoke/": written(
        "own_token", Write(who=frozenset({"operator"}), refusal=404)
    ),
    **readable("help/partitions/", "alerts/", "alerts/listed/"),
    **readable("lineage/", "lineage/listed/"),
    **readable("lineage/assets/<str:name>/", of="asset"),
    "audit/": Rule(reads=SITE),
    "alerts/new-channel/": asked("", Write(who=ADMINS, body=_channel_fields)),
    "alerts/channels/<str:name>/": asked("channel", Write(who=ADMINS)),
    "alerts/channels/<str:name>/delete/": asked("channel", Write(who=ADMINS)),
    "alerts/new-rule/": asked("", Write(who=EDITORS, body=_rule_form)),
    "alerts/rules/<str:name>/": asked("alert_rule", Write(who=EDITORS, body=_rule_form)),
    "alerts/rules/<str:name>/delete/": asked("alert_rule", Write(who=EDITORS)),
    "alerts/channels/<str:name>/test/": written("used_channel", Write(who=EDITORS)),
    "alerts/deliveries/<uuid:delivery_id>/resend/": written("delivery", Write(who=EDITORS)),
}


def _chosen(name: str) -> Body:
    return lambda things: {"id": [things[name]]}


_ASSET_PAGE = "assets/<str:name>/"
PAGES_ASSETS: Rules = {
    **readable("assets/", "gateways/", "gateways/listed/", "bundles/"),
    **readable("assets/graph/", "assets/graph/all/"),
    # An asset without a schedule stays as it is.
    "pause-assets/": written("", Write(who=EDITORS, body=_chosen("asset_id"), changes=False)),
    "unpause-assets/": written("", Write(who=EDITORS, body=_chosen("held_id"))),
    **readable(
        _ASSET_PAGE, _ASSET_PAGE + "impact/", _ASSET_PAGE + "partitions/<path:key>/", of="asset"
    ),
    _ASSET_PAGE + "selected/": Rule(of="asset"),
    _ASSET_PAGE + "partitions/": Rule(of="whole"),
    _ASSET_PAGE + "pause/": written("asset", may_edit()),
    _ASSET_PAGE + "unpause/": written("held", may_edit()),
    _ASSET_PAGE + "materialize/": asked("asset", may_materialize(selection="2013-06-01")),
    _ASSET_PAGE + "add-partition/": written("found", may_edit(key="UA")),
    _ASSET_PAGE + "remove-partition/": written("found", may_edit(key="AA")),
    _ASSET_PAGE + "report-write/": asked("told", may_materialize(selection=DAY)),
}

_RUN_PAGE = "runs/<int:pk>/"
PAGES_RUNS: Rules = {
    **readable("runs/", "runs/listed/"),
    **readable(
        _RUN_PAGE,
        _RUN_PAGE + "status/",
        _RUN_PAGE + "partitions/",
        _RUN_PAGE + "log/",
        _RUN_PAGE + "log/file/",
        _RUN_PAGE + "log/search/",
        _RUN_PAGE + "more/",
        of="failed_run",
    ),
    "runs/retry/": Rule(
        query="?run={failed_run}",
        writes={"POST": Write(who=OPERATORS, body=lambda things: {"run": [things["failed_run"]]})},
    ),
    _RUN_PAGE + "cancel/": asked("going_run", may_materialize()),
    _RUN_PAGE + "retry/": asked("failed_run", may_materialize()),
    _RUN_PAGE + "rerun/": asked("failed_run", may_materialize()),
}


def _selected(name: str) -> Body:
    return lambda things: {"id": [things[name]], "sure": "1"}


_BACKFILL_PAGE = "backfills/<int:pk>/"
# Each operation on backfills, and the name of a backfill that allows the operation.
_OPERATIONS = {
    "pause": "going", "resume": "paused", "cancel": "going", "retry": "failed", "delete": "failed",
}  # fmt: skip
PAGES_BACKFILLS: Rules = {
    **readable("", "going-on/", "search/", "backfills/", "backfills/listed/"),
    **readable(
        *(
            _BACKFILL_PAGE + fragment
            for fragment in ("", "progress/", "details/", "cells/", "selected/", "record/")
        ),
        of="made",
    ),
    "backfills/new/": asked("", may_backfill(_backfill_form, named=True)),
    _BACKFILL_PAGE + "change/": asked(
        "going",
        may_backfill(
            lambda _: {"max_active_runs": 7, "priority": 1, "order": "oldest", "description": "d"}
        ),
    ),
    **{
        f"{_BACKFILL_PAGE}{operation}/": Rule(
            of=of, writes={"POST": may_backfill()}, answers=frozenset({200, 302})
        )
        for operation, of in _OPERATIONS.items()
    },
    **{
        f"backfills/selected/{operation}/": written("", may_backfill(_selected(of), named=True))
        for operation, of in _OPERATIONS.items()
    },
}


# ---------------------------------------------------------------- the admin site
@dataclass(frozen=True, kw_only=True)
class Model:
    """A model of the admin site: roles that may look at its rows, and actions of each role."""

    of: str
    looks: frozenset[str] = SITE
    adds: frozenset[str] = NOBODY
    changes: frozenset[str] = NOBODY
    deletes: frozenset[str] = NOBODY
    # An action on chosen rows that changes something, and who may choose it.
    action: str = ""
    acts: frozenset[str] = NOBODY
    # Which row is chosen for it, where it cannot be done with the row that is looked at.
    chosen: str = ""
    new: Body = nothing


def _administered(of: str, **more: Any) -> Model:
    return Model(of=of, looks=ADMINS, **more)


_KEPT_BY_ADMINS: dict[str, Any] = {"adds": ADMINS, "changes": ADMINS, "deletes": ADMINS}
MODELS: dict[str, Model] = {
    "accounts_app/user": _administered("user", action="unlock", acts=ADMINS, **_KEPT_BY_ADMINS),
    "auth/group": _administered("group", new=lambda _: {"name": "new"}, **_KEPT_BY_ADMINS),
    "accounts_app/grant": _administered(
        "grant",
        new=lambda things: {
            "permission": "backfill", "person": things["person"], "asset": things["asset"]
        },
        **_KEPT_BY_ADMINS,
    ),
    "axes/accessattempt": _administered("attempt", deletes=ADMINS),
    "axes/accesslog": _administered("access"),
    "knox/authtoken": _administered("token", deletes=ADMINS),
    "accounts_app/auditentry": Model(of="entry"),
    "partitions_app/partitiondefinition": Model(of="definition"),
    "partitions_app/runtimepartition": Model(of="runtime"),
    "assets_app/asset": Model(of="asset_id", action="unpause", acts=ADMINS, chosen="held_id"),
    "assets_app/materialization": Model(of="materialization"),
    "assets_app/run": Model(of="failed_run", action="cancel", acts=ADMINS, chosen="going_run"),
    "assets_app/gateway": Model(of="gateway"),
    "assets_app/bundle": Model(of="bundle"),
    "backfills_app/backfill": Model(of="failed", action="delete", acts=ADMINS),
}  # fmt: skip


def _rules_of_model(model: Model) -> Rules:
    """Return the rules of the six addresses that Django gives a model, by the ends of the
    addresses.
    """
    chosen, shown = model.chosen or model.of, frozenset({200, 302})
    # Whoever may look may send the list's form; without the right to an action nothing is done.
    does = Write(
        who=model.looks,
        body=lambda things: {"action": model.action, "_selected_action": [things[chosen]]},
        changes=bool(model.action),
        changed_by=model.acts,
    )
    confirmed = Write(who=model.deletes, body=lambda _: {"post": "yes"})
    is_new_full = model.new is not nothing
    return {
        "": Rule(reads=model.looks, writes={"POST": does}),
        "add/": Rule(
            reads=model.adds,
            writes={"POST": Write(who=model.adds, body=model.new, changes=is_new_full)},
        ),
        "<path:object_id>/history/": Rule(
            of=model.of,
            reads=model.looks,
            writes={"POST": Write(who=model.looks, changes=False)},
        ),
        "<path:object_id>/delete/": Rule(
            of=model.of, reads=model.deletes, writes={"POST": confirmed}
        ),
        # Which fields a form changes is for tests of their own: this body is refused, or is empty.
        "<path:object_id>/change/": Rule(
            of=model.of,
            reads=model.looks,
            writes={"POST": Write(who=model.changes, changes=False)},
        ),
        # Leads to the form, whoever may read that.
        "<path:object_id>/": Rule(
            of=model.of,
            reads=SITE,
            writes={"POST": Write(who=SITE, changes=False)},
            answers=shown,
        ),
    }


ADMIN_MODELS: Rules = {
    f"admin/{name}/{route}": rule
    for name, model in MODELS.items()
    for route, rule in _rules_of_model(model).items()
}
# Pages that change nothing, whatever is sent to them.
_ANY = {"POST": Write(who=SITE, changes=False, answers=frozenset({200, 302, 404, 405}))}
_APPS = "accounts_app|auth|axes|knox|partitions_app|assets_app|backfills_app"
ADMIN_SITE: Rules = {
    "admin/": Rule(reads=SITE, writes=_ANY),
    "admin/login/": Rule(open_to_all=frozenset({200, 302, 405})),
    "admin/logout/": Rule(reads=None, turned_to="/admin/", writes={"POST": Write(who=SITE)}),
    "admin/password_change/": Rule(reads=SITE, writes=_ANY, answers=frozenset({302})),
    "admin/password_change/done/": Rule(reads=SITE, writes=_ANY),
    "admin/autocomplete/": Rule(
        reads=ADMINS,
        query="?app_label=accounts_app&model_name=grant&field_name=person&term=v",
    ),
    "admin/jsi18n/": Rule(reads=SITE, writes=_ANY),
    # Leads to the page of a row; no model of the admin site has such a page.
    "admin/r/<path:content_type_id>/<path:object_id>/": Rule(
        of="asset_id", reads=SITE, writes=_ANY, answers=frozenset({404})
    ),
    "admin/accounts_app/user/<id>/password/": Rule(
        of="user", reads=ADMINS, writes={"POST": Write(who=ADMINS, changes=False)}
    ),
    f"admin/^(?P<app_label>{_APPS})/$": Rule(of="app", reads=SITE, writes=_ANY),
    "admin/(?P<url>.*)$": Rule(reads=SITE, writes=_ANY, answers=frozenset({404})),
}

FAMILIES: dict[str, Rules] = {
    "API: assets": API_ASSETS,
    "API: runs": API_RUNS,
    "API: backfills": API_BACKFILLS,
    "API: alerts": API_ALERTS,
    "API: others": API_OTHERS,
    "pages: accounts": PAGES_ACCOUNTS,
    "pages: assets": PAGES_ASSETS,
    "pages: runs": PAGES_RUNS,
    "pages: backfills": PAGES_BACKFILLS,
    "admin: site": ADMIN_SITE,
    "admin: models": ADMIN_MODELS,
}
