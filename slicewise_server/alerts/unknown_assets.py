"""Names in alert rules that no declared asset has: a rule may precede its asset, or have a typo."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple

from assets_app.models import Asset
from slicewise_server.alerts.models import AlertRule

_MOST_NAMED = 10


class UnknownAssets(NamedTuple):
    """A rule with the names that no declared asset has."""

    rule: str
    names: list[str]


def unknown_assets(alert_rules: Iterable[AlertRule]) -> list[UnknownAssets]:
    """Return the rules of people that name assets that are not declared: one statement at most.

    A declared rule follows the definition files.
    """
    with_names = [row for row in alert_rules if row.assets and not row.declared]
    names = {name for alert_rule in with_names for name in alert_rule.assets}
    unknown = names - _declared_names(names) if names else set()
    rows = (
        UnknownAssets(alert_rule.name, [name for name in alert_rule.assets if name in unknown])
        for alert_rule in with_names
    )
    return [row for row in rows if row.names]


def warning_of(alert_rule: AlertRule) -> str:
    """Return a warning about names that no declared asset has, with similar names; empty without
    such names.
    """
    unknown = [name for row in unknown_assets([alert_rule]) for name in row.names]
    if not unknown:
        return ""
    declared = list(Asset.objects.filter(active=True).values_list("name", flat=True))
    words = [_with_similar(name, declared) for name in unknown[:_MOST_NAMED]]
    more = len(unknown) - _MOST_NAMED
    return (
        f"No definition file declares {', '.join(words)}{f' and {more:,} more' * (more > 0)}."
        " The rule sends no alerts of such an asset until a file declares the asset."
    )


def _with_similar(name: str, declared: list[str]) -> str:
    similar = get_close_matches(name, declared, n=1)
    return f"{name} (did you mean {similar[0]}?)" if similar else name


def _declared_names(names: Iterable[str]) -> set[str]:
    return set(Asset.objects.filter(active=True, name__in=names).values_list("name", flat=True))
