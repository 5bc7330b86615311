"""Alert rules of definition files: one rule for all assets with the same kinds and channel."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic
from typing import Any, NamedTuple
from zlib import crc32

from django.db import connection, transaction

from assets_app.models import Asset
from slicewise_server.alerts.models import AlertRule, Channel
from slicewise_server.alerts.rule_endings import RuleEndings
from slicewise_server.events.feed import end_of_feed
from slicewise_server.web.advisory_locks import AdvisoryLock, lock_until_commit

log = logging.getLogger(__name__)

# The end of each declared rule's name; other rules may not have a name with this end.
NAME_END = " (declared)"
_LONGEST_NAME = 100

MOST_CHANNELS = 20
"""The number of missing channels that a page lists."""
_MOST_ASSETS = 10
# One statement, as the page of alerts asks every few seconds: the counts are read from the column
# of the alerts alone.
_WITHOUT_CHANNEL = """
SELECT missing.channel, missing.names[1:%(assets)s], cardinality(missing.names)
FROM (
    SELECT alert.value ->> 'to' AS channel,
           array_agg(DISTINCT asset.name ORDER BY asset.name) AS names
    FROM assets_app_asset AS asset
    CROSS JOIN LATERAL jsonb_array_elements(asset.alerts) AS alert(value)
    WHERE asset.active AND asset.alerts <> '[]' AND NOT EXISTS (
        SELECT FROM alerts_channel AS channel WHERE channel.name = alert.value ->> 'to'
    )
    GROUP BY 1 ORDER BY 1 LIMIT %(channels)s
) AS missing
ORDER BY missing.channel
"""


_DIGEST = """
SELECT md5(coalesce(string_agg(name || ' ' || alerts::text, chr(10) ORDER BY name), ''))
FROM assets_app_asset WHERE active AND alerts <> '[]'
"""


class MissingChannel(NamedTuple):
    """A channel that declared alerts name and that does not exist: the first assets in the order of
    names, and the number of all.
    """

    channel: str
    assets: list[str]
    asset_count: int

    @property
    def asset_names(self) -> str:
        """The names as a text, with an ellipsis for further assets."""
        return ", ".join([*self.assets, *(["…"] if self.asset_count > len(self.assets) else [])])


@dataclass(frozen=True, order=True, slots=True)
class _Declared:
    """The facts that the assets of one rule share."""

    channel: str
    kinds: tuple[str, ...]
    gather_seconds: int

    @property
    def rule_name(self) -> str:
        """The name of the rule, the same at each call."""
        text = f"{self.channel}: {', '.join(self.kinds) or 'all events'}, {self.gather_seconds} s"
        if len(text) + len(NAME_END) > _LONGEST_NAME:
            digest = f"… {crc32(text.encode()):08x}"
            text = text[: _LONGEST_NAME - len(NAME_END) - len(digest)] + digest
        return text + NAME_END


@transaction.atomic
def store_declared_rules() -> None:
    """Create, change and delete declared rules so that they are the alerts of the active assets.

    Call after each change of declared alerts or channels, in the transaction of the change: one
    call at a time sees all committed changes. Alerts to a channel that does not exist have no
    rule until the channel is created.
    """
    lock_declared_rules()
    declared = _declared_alerts()
    channels = {channel.name: channel for channel in Channel.objects.all()}
    declared_by_name = {key.rule_name: key for key in declared if key.channel in channels}
    _leave_out_taken(declared_by_name)
    present = {
        alert_rule.name: alert_rule for alert_rule in AlertRule.objects.filter(declared=True)
    }
    assets_by_name = {name: declared[key] for name, key in declared_by_name.items()}
    if assets_by_name == {name: alert_rule.assets for name, alert_rule in present.items()}:
        return
    endings = RuleEndings()
    _delete(present.keys() - assets_by_name.keys(), endings)
    for name, alert_rule in present.items():
        if alert_rule.assets != assets_by_name.get(name, alert_rule.assets):
            _set_assets(alert_rule, assets_by_name[name], endings)
    end = end_of_feed()
    AlertRule.objects.bulk_create(
        AlertRule(
            name=name,
            channel=channels[key.channel],
            kinds=list(key.kinds),
            assets=assets_by_name[name],
            gather_seconds=key.gather_seconds,
            declared=True,
            position=end,
        )
        for name, key in declared_by_name.items()
        if name not in present
    )


class SyncFollower:
    """Stores the declared rules once assets declare other alerts than at the last look.

    `slicewise sync` runs in a process without alerts, where no receiver hears of the change.
    """

    def __init__(self, seconds: float = 10.0) -> None:
        """Look at most once in so many seconds."""
        self._seconds, self._next_at, self._seen = seconds, 0.0, ""

    def look(self) -> None:
        """Look at the declared alerts, in one statement; the first look of a process stores the
        rules too.
        """
        if monotonic() < self._next_at:
            return
        self._next_at = monotonic() + self._seconds
        with connection.cursor() as cursor:
            cursor.execute(_DIGEST)
            (digest,) = cursor.fetchone()
        if digest == self._seen:
            return
        try:
            store_declared_rules()
        except Exception:  # the rules that exist go on sending
            log.exception("declared rules not stored")
        else:
            self._seen = digest


def lock_declared_rules() -> None:
    """Keep other transactions from changing declared rules until this one ends."""
    lock_until_commit(AdvisoryLock.DECLARED_ALERTS, 0)


def alerts_without_channel() -> list[MissingChannel]:
    """Return the first channels that declared alerts name and that do not exist, with assets."""
    with connection.cursor() as cursor:
        cursor.execute(_WITHOUT_CHANNEL, {"channels": MOST_CHANNELS, "assets": _MOST_ASSETS})
        return [MissingChannel(*row) for row in cursor.fetchall()]


def _leave_out_taken(declared_by_name: dict[str, _Declared]) -> None:
    """Leave out names that rules of people have: a sync must not fail of a name."""
    taken = AlertRule.objects.filter(name__in=list(declared_by_name), declared=False)
    for name in taken.values_list("name", flat=True):
        log.warning("a rule of a person has the name of a declared rule", extra={"rule": name})
        del declared_by_name[name]


def _declared_alerts() -> dict[_Declared, list[str]]:
    """Return the sorted names of the active assets by declared alert."""
    declaring = Asset.objects.filter(active=True).exclude(alerts=[]).order_by("name")
    names: dict[_Declared, list[str]] = {}
    for name, alerts in declaring.values_list("name", "alerts"):
        for key in _read(alerts):
            names.setdefault(key, []).append(name)
    return names


def _read(alerts: Iterable[dict[str, Any]]) -> Iterable[_Declared]:
    return (
        _Declared(alert["to"], tuple(alert["kinds"]), alert["gather_seconds"]) for alert in alerts
    )


def _set_assets(alert_rule: AlertRule, assets: list[str], endings: RuleEndings) -> None:
    locked = AlertRule.objects.select_for_update(of=("self",), no_key=True).get(pk=alert_rule.pk)
    endings.end(locked)
    AlertRule.objects.filter(pk=alert_rule.pk).update(assets=assets)


def _delete(names: Iterable[str], endings: RuleEndings) -> None:
    alert_rules = AlertRule.objects.select_for_update(of=("self",), no_key=True)
    for alert_rule in alert_rules.filter(name__in=names, declared=True).order_by("pk"):
        endings.end(alert_rule)
        alert_rule.delete()
