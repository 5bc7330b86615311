"""Pauses of assets. The assets of one function are paused together, since one run makes all."""

from collections.abc import Iterable

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts_app import audit, policy
from accounts_app.models import User
from assets_app.catalogue.timetables import pause_schedule
from assets_app.models import Asset, Producer
from assets_app.queries.clock import database_now


def set_paused(asset: Asset, paused: bool, *, user: User) -> list[str]:
    """Stop or resume scheduled writes of the asset and of the other assets of the function; return
    the names of the changed assets.

    Requests by people are not held back.
    """
    policy.require(user, policy.Action.PAUSE)
    with transaction.atomic():
        together = _locked_together(asset.pk)
        # A second call changes nothing: to unpause an asset that is not paused would pass over
        # partitions that wait for the next tick.
        changing = {row.pk: row.name for row in together if row.paused != paused}
        if Asset.objects.filter(pk__in=changing).update(paused=paused):
            (current,) = (row for row in together if row.pk == asset.pk)
            # An asset that no file declares has no part in the schedule of its former function.
            if current.active:
                pause_schedule(current, paused=paused, now=database_now())
            audit.record(user, "pause" if paused else "unpause", "asset", asset.name)
    return sorted(changing.values())


def _locked_together(asset_id: int) -> list[Asset]:
    """Return the asset and the other assets of the function, locked in the order of ids until the
    transaction ends.

    The lock lets other transactions add runs and partitions of the assets: a tick that holds the
    schedule would otherwise wait at its end for a pause that waits for the schedule.
    """
    while True:
        rows = _made_together(asset_id).order_by("pk")
        locked = list(rows.select_for_update(of=("self",), no_key=True))
        # A sync for which the lock waited may have changed which assets the function has.
        if [row.pk for row in locked] == list(rows.values_list("pk", flat=True)):
            return locked


def _made_together(asset_id: int) -> QuerySet[Asset]:
    """Return the asset and, if a file declares the asset, all declared assets of the function."""
    function = Asset.objects.filter(pk=asset_id, active=True).values("producer")
    return Asset.objects.filter(Q(pk=asset_id) | Q(producer__in=function, active=True))


def pause_together(producers: Iterable[Producer]) -> None:
    """Pause the assets of these functions of which a paused asset has joined; call in a
    transaction, before the rows of schedules are locked.

    The schedule of the function is paused by one paused asset. The pages of the others say so.
    """
    paused = Asset.objects.filter(producer=OuterRef("producer"), active=True, paused=True)
    unpaused = Asset.objects.filter(
        Exists(paused), producer__in=producers, active=True, paused=False
    )
    rows = unpaused.order_by("pk").select_for_update(of=("self",), no_key=True)
    asset_ids = list(rows.values_list("pk", flat=True))
    if asset_ids:
        Asset.objects.filter(pk__in=asset_ids).update(paused=True)
