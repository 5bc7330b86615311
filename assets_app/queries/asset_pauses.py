"""Pauses of assets: the person who paused an asset, and the time, from the audit trail."""

from datetime import datetime
from typing import NamedTuple

from accounts_app.models import AuditEntry
from assets_app.models import Asset


class AssetPause(NamedTuple):
    """The present pause of an asset; the name of the person outlives the account."""

    paused_by: str
    paused_at: datetime


def pause_of(asset: Asset) -> AssetPause | None:
    """Return the present pause of an asset: one statement, none if the asset is not paused.

    The assets of one function are paused together, and the audit trail names the asset that the
    person chose. An asset that joined a paused function may be paused without an entry, and an
    earlier pause may have ended: None, as no person is known.
    """
    if not asset.paused:
        return None
    entries = AuditEntry.objects.filter(
        subject_type="asset",
        subject__in=[asset.name, *asset.materialized_with],
        action__in=("pause", "unpause"),
    )
    latest = entries.order_by("-id").first()
    if latest is None or latest.action != "pause":
        return None
    return AssetPause(latest.actor_name, latest.at)
