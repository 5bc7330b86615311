"""Alerts that definition files declare."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from slicewise.errors import DefinitionError
from slicewise.texts.hints import name_hint

# The kinds of events that belong to an asset; a server has further kinds, of workers and bundles.
ALERT_KINDS = (
    *("run_failed", "run_recovered", "validation_failed", "validation_warned"),
    *("backfill_succeeded", "backfill_failed", "backfill_canceled", "schedule_truncated"),
    "partition_overdue",
)
_SHORT_KINDS = {"overdue": "partition_overdue"}
LONGEST_GATHERING = timedelta(hours=1)
"""The longest time in which events become one message."""
_MOST_ALERTS = 100
_CHANNEL_LIMIT = 100


@dataclass(frozen=True, init=False)
class Alert:
    """Events of an asset that a channel is told of: ``Alert("run_failed", to="oncall")``.

    ``kinds`` are kinds of events, with ``overdue`` for ``partition_overdue``; none means all.
    ``to`` is the name of a channel, which an administrator creates on the server: definition files
    hold no addresses. Events of ``gather`` (30 seconds unless given, at most an hour) become one
    message. Raises DefinitionError.
    """

    kinds: tuple[str, ...]
    to: str
    gather: timedelta

    def __init__(self, *kinds: str, to: str, gather: timedelta = timedelta(seconds=30)) -> None:
        full_kinds = [_full_kind(kind) for kind in kinds]
        for kind in full_kinds:
            _check_kind(kind)
        _check_channel(to)
        _check_gathering(gather)
        object.__setattr__(self, "kinds", tuple(sorted(set(full_kinds))))
        object.__setattr__(self, "to", to)
        object.__setattr__(self, "gather", gather)

    def to_json(self) -> dict[str, Any]:
        """Return ``{"kinds": [...], "to": ..., "gather_seconds": ...}``."""
        seconds = self.gather // timedelta(seconds=1)
        return {"kinds": list(self.kinds), "to": self.to, "gather_seconds": seconds}


def alerts_json(option_value: object) -> list[dict[str, Any]]:
    """Return ``alerts=`` as JSON, each alert once, at most 100. Raises DefinitionError."""
    alerts = [option_value] if isinstance(option_value, Alert) else option_value
    if isinstance(alerts, str) or not isinstance(alerts, Iterable):
        raise DefinitionError(_wrong_value(alerts))
    alerts = list(alerts)
    for alert in alerts:
        if not isinstance(alert, Alert):
            raise DefinitionError(_wrong_value(alert))
    distinct_alerts = list(dict.fromkeys(alerts))
    if len(distinct_alerts) > _MOST_ALERTS:
        raise DefinitionError(
            f"alerts has {len(distinct_alerts):,} alerts, and an asset has at most {_MOST_ALERTS};"
            " one Alert takes several kinds of events, and an Alert without kinds takes all"
        )
    return [alert.to_json() for alert in distinct_alerts]


def _wrong_value(value: object) -> str:
    return f'alerts is a list such as [Alert("run_failed", to="oncall")], not {value!r}'


def _full_kind(kind: Any) -> Any:
    return _SHORT_KINDS.get(kind, kind) if isinstance(kind, str) else kind


def _check_kind(kind: object) -> None:
    if not isinstance(kind, str):
        raise DefinitionError(f"Alert takes kinds of events as texts, not {kind!r}")
    if kind not in ALERT_KINDS:
        hint = name_hint(kind, ALERT_KINDS, otherwise=f"use one of {', '.join(ALERT_KINDS)}")
        raise DefinitionError(f"Alert: {kind!r} is no kind of an asset's events; {hint}")


def _check_channel(to: object) -> None:
    if not isinstance(to, str) or not to.strip() or to != to.strip():
        raise DefinitionError(f"Alert: to is the name of a channel, not {to!r}")
    if len(to) > _CHANNEL_LIMIT or "/" in to or not to.isprintable():
        raise DefinitionError(
            f"Alert: to={to!r} cannot be a channel's name: at most {_CHANNEL_LIMIT} characters,"
            " without / and control characters; addresses belong to the channel on the server"
        )


def _check_gathering(gather: object) -> None:
    if not isinstance(gather, timedelta) or not timedelta(0) <= gather <= LONGEST_GATHERING:
        raise DefinitionError(
            f"Alert: gather is a timedelta from 0 seconds to an hour, not {gather!r}"
        )
