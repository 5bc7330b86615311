"""Backfills: the list, the page of one with its progress, and stopping it."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from accounts_app.errors import InvalidRequest
from accounts_app.models import AuditEntry, User
from accounts_app.policy import Action, may
from assets_app.views.listing import STOP_POLLING, page_number, paged, unchanged
from backfills_app.models import Backfill, BackfillState
from backfills_app.queries import failures_of, page_of_interest, partitions_page
from backfills_app.services import cancel_backfill
from backfills_app.views.progress import first_part, progress_of
from partitions_app.grid_cells import Cell, room_for
from partitions_app.grid_lists import longest_segment
from partitions_app.labels import label_of
from partitions_app.looks import PARTITION_LOOKS, look_of
from slicewise.uris import masked_text

_RECENT_RUNS = 10
_LONGEST_WINDOW = len("2013-01-01T00:00+00:00|")


@login_required
@require_safe
def backfills(request: HttpRequest) -> HttpResponse:
    """All backfills, newest first."""
    page = paged(request, _matching(request), 30)
    context = {
        "page": page,
        "rows": [progress_of(backfill) for backfill in page.items],
        "states": BackfillState.choices,
        "filtered": any(request.GET.get(name) for name in ("asset", "state", "person")),
        "may_backfill": may(request.user, Action.BACKFILL),
    }
    return render(request, "backfills_app/backfills.html", context)


@login_required
@require_safe
def backfill(request: HttpRequest, pk: int) -> HttpResponse:
    """One backfill: progress, partitions, runs, failures, and who did what to it."""
    found = _backfill(pk)
    runs = found.group.runs.listed().order_by("-id")
    trail = AuditEntry.objects.filter(subject_type="backfill", subject=found.name)
    context = {
        **_moving(request, found),
        **_cells(request, found),
        "runs": runs[:_RECENT_RUNS],
        "code": masked_text(found.origin_code),
        "trail": trail.order_by("id")[:50],
        "looks": [look for look in PARTITION_LOOKS if look.name not in ("stale", "not-yet-due")],
    }
    return render(request, "backfills_app/backfill.html", context)


@login_required
@require_safe
def backfill_progress(request: HttpRequest, pk: int) -> HttpResponse:
    """The part of the page that changes while it runs."""
    found = _backfill(pk)
    if answer := unchanged(request, progress_of(found).version):
        return answer
    status = STOP_POLLING if found.ended else 200
    return render(
        request, "backfills_app/backfill.html#progress", _moving(request, found), status=status
    )


@login_required
@require_safe
def backfill_cells(request: HttpRequest, pk: int) -> HttpResponse:
    """The partitions of one page of the grid."""
    found = _backfill(pk)
    if answer := unchanged(request, progress_of(found).version):
        return answer
    status = STOP_POLLING if found.ended else 200
    return render(
        request, "backfills_app/backfill.html#cells", _cells(request, found), status=status
    )


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def backfill_cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Asks whether it is meant, then stops the backfill."""
    found = _backfill(pk)
    if request.method != "POST":
        context = {"backfill": found, "progress": progress_of(found)}
        return render(request, "backfills_app/backfill_cancel.html", context)
    assert isinstance(request.user, User)  # noqa: S101  (login_required)
    try:
        canceled = cancel_backfill(found, user=request.user)
        messages.success(request, f"{found.name} is {canceled.get_state_display().lower()}.")
    except InvalidRequest as refused:
        messages.error(request, str(refused))
    return redirect("backfills:backfill", pk)


def _backfill(pk: int) -> Backfill:
    return get_object_or_404(Backfill.objects.listed(), pk=pk)


def _matching(request: HttpRequest) -> QuerySet[Backfill]:
    rows = Backfill.objects.listed()
    if state := request.GET.get("state"):
        rows = rows.filter(state=state)
    if asset := request.GET.get("asset", "").strip():
        rows = rows.filter(asset__name__icontains=asset)
    if person := request.GET.get("person", "").strip():
        rows = rows.filter(submitted_by__username__icontains=person)
    return rows.order_by("-id")


def _moving(request: HttpRequest, found: Backfill) -> dict[str, Any]:
    progress = progress_of(found)
    return {
        "backfill": found,
        "progress": progress,
        "failures": failures_of(found) if progress.counts["failed"] else [],
        "may_cancel": may(request.user, Action.CANCEL)
        and not found.ended
        and found.state != BackfillState.CANCELING,
    }


def _cells(request: HttpRequest, found: Backfill) -> dict[str, Any]:
    part = first_part(found)
    version = progress_of(found).version
    if part is None:
        return {"backfill": found, "cells": [], "cells_version": version}
    # Each has the address of its asset, and its label beside its key.
    longest = "x" * (_LONGEST_WINDOW + len(part.asset.name) // 3)
    if found.asset.definition is not None:
        longest += longest_segment(found.asset.definition)
    size = room_for(longest, copies=3)
    asked = (
        page_number(request, "cells") if request.GET.get("cells") else page_of_interest(part, size)
    )
    number = min(asked, max(-(-part.total // size), 1))
    rows = partitions_page(part, number, size)
    rule = found.asset.definition if part.asset == found.asset else part.asset.definition
    return {
        "backfill": found,
        "cells": [Cell(look_of(state), key, label_of(rule, key)) for key, state, _, _ in rows],
        "cells_asset": part.asset,
        "cells_version": version,
        "cells_page": number,
        "cells_first": (number - 1) * size + 1,
        "cells_last": (number - 1) * size + len(rows),
        "cells_total": part.total,
        "cells_previous": number - 1 if number > 1 else None,
        "cells_next": number + 1 if number * size < part.total else None,
    }
