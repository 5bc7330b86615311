"""The page of one backfill, and the fragments of the page that update themselves."""

import json
from collections.abc import Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts_app.models import AuditEntry
from backfills_app.models import AssetRole, Backfill, BackfillAsset
from backfills_app.queries.failures import failures_of
from backfills_app.queries.pace import MOST_RUNS_DRAWN
from backfills_app.queries.partitions import interesting_position, partitions_from
from backfills_app.queries.skips import lacks_upstream
from backfills_app.services.partitions.skipping import skips_of
from backfills_app.views.allowed import reaches_of
from backfills_app.views.progress import Progress, part_progress, progress_with_pace
from backfills_app.views.timeline import timeline_of
from partitions_app.grid.cells import Cell, room_for
from partitions_app.grid.lists import longest_segment
from partitions_app.labels import label_of
from partitions_app.state_badges import PARTITION_LOOKS, badge_of_backfill_partition
from slicewise.texts import masked_text
from slicewise_server.web.listing import STOP_POLLING, unchanged

TEMPLATE = "backfills_app/backfill.html"
_RECENT_RUNS = 10
_MOST_ENTRIES = 50
_LONGEST_WINDOW = len("2013-01-01T00:00+00:00|")
_NO_LOOKS = ("stale", "not-yet-due")


@login_required
@require_safe
def backfill(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one backfill: progress, partitions, runs, failures, and the audit trail."""
    backfill_row, progress = _backfill(pk)
    trail = AuditEntry.objects.filter(subject_type="backfill", subject=backfill_row.name)
    context = {
        **_progress_context(request, backfill_row, progress),
        **_details_context(backfill_row, progress),
        **_cells_context(request, backfill_row, progress),
        "codes": _frozen_codes(backfill_row),
        "by_role": _by_role(backfill_row),
        "params": [
            (name, json.dumps(value, ensure_ascii=False))
            for name, value in backfill_row.params.items()
        ],
        "trail": trail.order_by("id")[:_MOST_ENTRIES],
        "looks": [look for look in PARTITION_LOOKS if look.name not in _NO_LOOKS],
    }
    return render(request, TEMPLATE, context)


@login_required
@require_safe
def backfill_progress(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the progress, and the actions on the backfill."""
    backfill_row, progress = _backfill(pk)
    if answer := unchanged(request, progress.version):
        return answer
    context = _progress_context(request, backfill_row, progress)
    return render(request, f"{TEMPLATE}#progress", context, status=_status(backfill_row))


@login_required
@require_safe
def backfill_details(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the outcome so far: timeline, failures, skipped partitions, latest runs."""
    backfill_row, progress = _backfill(pk)
    if answer := unchanged(request, progress.version):
        return answer
    context = _details_context(backfill_row, progress)
    return render(request, f"{TEMPLATE}#details", context, status=_status(backfill_row))


@login_required
@require_safe
def backfill_cells(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the partitions of one page of the grid."""
    backfill_row, progress = _backfill(pk)
    if answer := unchanged(request, progress.version):
        return answer
    context = _cells_context(request, backfill_row, progress)
    return render(request, f"{TEMPLATE}#cells", context, status=_status(backfill_row))


def _status(backfill_row: Backfill) -> int:
    return STOP_POLLING if backfill_row.ended else 200


def _backfill(pk: int) -> tuple[Backfill, Progress]:
    rows = Backfill.objects.recorded().select_related("code_version__bundle")
    backfill_row = get_object_or_404(rows.defer("code_version__archive"), pk=pk)
    return backfill_row, progress_with_pace([backfill_row])[0]


def _progress_context(
    request: HttpRequest, backfill_row: Backfill, progress: Progress
) -> dict[str, Any]:
    asset_rows: Sequence[BackfillAsset] = list(backfill_row.assets.all())
    is_upstream_missing = lacks_upstream(asset_rows)
    return {
        "backfill": backfill_row,
        "progress": progress,
        "parts": [part_progress(backfill_row, asset_row) for asset_row in asset_rows]
        if len(asset_rows) > 1
        else [],
        "allowed": reaches_of(request).over(progress, skipped_upstream=is_upstream_missing),
    }


def _details_context(backfill_row: Backfill, progress: Progress) -> dict[str, Any]:
    asset_rows = list(backfill_row.assets.all())
    return {
        "backfill": backfill_row,
        "progress": progress,
        "timeline": timeline_of(backfill_row, timezone.now()),
        "most_runs_drawn": MOST_RUNS_DRAWN,
        "failures": failures_of(backfill_row) if progress.counts.failed else [],
        "skipped": skips_of(backfill_row) if progress.counts.skipped else [],
        "several_assets": len(asset_rows) > 1,
        "runs": list(backfill_row.group.runs.listed().order_by("-id")[:_RECENT_RUNS]),
    }


def _cells_context(
    request: HttpRequest, backfill_row: Backfill, progress: Progress
) -> dict[str, Any]:
    asset_rows = list(backfill_row.assets.all())
    asset_row = next(
        (candidate for candidate in asset_rows if str(candidate.pk) == request.GET.get("part")),
        None,
    )
    first_chosen = next(
        (candidate for candidate in asset_rows if candidate.asset_id == backfill_row.asset_id), None
    )
    asset_row = asset_row or first_chosen or next(iter(asset_rows), None)
    context = {
        "backfill": backfill_row,
        "cells": [],
        "cells_part": asset_row,
        "cells_parts": asset_rows,
    }
    context["cells_version"] = progress.version
    if asset_row is None:
        return context
    definition = asset_row.asset.definition
    # Each cell has the address of its asset, and the label beside the key.
    longest = "x" * (_LONGEST_WINDOW + len(asset_row.asset.name) // 3)
    size = room_for(
        longest + (longest_segment(definition) if definition is not None else ""), copies=3
    )
    requested_position = request.GET.get("from", "")
    if requested_position.isdecimal() and len(requested_position) < 10:
        first = max(int(requested_position) - 1, 0)
    else:
        first = max(interesting_position(asset_row, backfill_row.order) - size // 2, 0)
    page = partitions_from(asset_row, first, size)
    cells = [
        Cell(
            badge_of_backfill_partition(row.state, row.run_state),
            row.key,
            label_of(definition, row.key),
            because=row.because,
        )
        for row in page.rows
    ]
    return context | {
        "cells": cells,
        "cells_from": first + 1,
        "cells_last": first + len(cells),
        "cells_previous": None if page.previous is None else page.previous + 1,
        "cells_next": None if page.following is None else page.following + 1,
    }


def _by_role(backfill_row: Backfill) -> list[tuple[str, list[BackfillAsset]]]:
    """Return the backfill's assets by role, chosen assets first."""
    asset_rows = list(backfill_row.assets.all())
    by_role = [
        (role.label, [asset_row for asset_row in asset_rows if asset_row.role == role])
        for role in AssetRole
    ]
    roles_with_assets = [(label, role_rows) for label, role_rows in by_role if role_rows]
    if len(asset_rows) == 1:
        return [("Asset", asset_rows)]
    return roles_with_assets


def _frozen_codes(backfill_row: Backfill) -> list[tuple[BackfillAsset, str]]:
    """Return the frozen code of each of the backfill's assets, without passwords."""
    versions = {
        version.pk: version.source
        for asset_row in backfill_row.assets.all()
        if (version := asset_row.producer_version)
    }
    return [
        (asset_row, masked_text(versions[asset_row.producer_version_id]))
        for asset_row in backfill_row.assets.all()
    ]
