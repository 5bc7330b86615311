"""The page of one backfill, and the fragments of the page that update themselves."""

import json
from collections.abc import Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from accounts_app.models import AuditEntry
from assets_app.models import BundleVersion, ProducerVersion
from assets_app.queries.clock import database_now
from backfills_app.models import AssetRole, Backfill, BackfillAsset
from backfills_app.queries.canceled import canceled_without_run
from backfills_app.queries.failures import failures_of
from backfills_app.queries.pace import MOST_RUNS_DRAWN
from backfills_app.queries.skips import retried_skips
from backfills_app.services.partitions.skipped_partitions import skips_of
from backfills_app.views.allowed import reaches_of
from backfills_app.views.backfill_cells import cells_context
from backfills_app.views.backfill_selection import selection_context
from backfills_app.views.progress import Progress, progress_by_asset, progress_with_pace
from backfills_app.views.timeline import timeline_of
from slicewise.texts import masked_json, masked_text
from slicewise_server.web.listing import STOP_POLLING, unchanged, version_of

TEMPLATE = "backfills_app/backfill.html"
_RECENT_RUNS = 10
_MOST_ENTRIES = 50


@login_required
@require_safe
def backfill(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one backfill: progress, partitions, runs, failures, and the audit trail."""
    backfill_row, progress = _backfill(pk)
    cells = cells_context(request, backfill_row, progress)
    context = {
        **_progress_context(request, backfill_row, progress),
        **_details_context(backfill_row, progress),
        **cells,
        **selection_context(request, backfill_row, cells["cells_asset"]),
        **_record_context(backfill_row),
        "codes": _frozen_codes(backfill_row),
        "by_role": _by_role(backfill_row),
        "params": [
            (name, json.dumps(value, ensure_ascii=False))
            for name, value in masked_json(backfill_row.params).items()
        ],
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
    context = cells_context(request, backfill_row, progress)
    return render(request, f"{TEMPLATE}#cells", context, status=_status(backfill_row))


@login_required
@require_safe
def backfill_record(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the times of the backfill, and the audit trail."""
    backfill_row, _ = _backfill(pk)
    context = _record_context(backfill_row)
    if answer := unchanged(request, context["version"]):
        return answer
    return render(request, f"{TEMPLATE}#record", context, status=_status(backfill_row))


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
    return {
        "backfill": backfill_row,
        "progress": progress,
        "asset_progresses": progress_by_asset(backfill_row, asset_rows)
        if len(asset_rows) > 1
        else [],
        "canceled_without_run": canceled_without_run(backfill_row, progress.counts.canceled)
        if backfill_row.ended
        else 0,
        "allowed": reaches_of(request).over(
            progress, has_retried_skips=retried_skips(asset_rows).exists()
        ),
    }


def _details_context(backfill_row: Backfill, progress: Progress) -> dict[str, Any]:
    asset_rows = list(backfill_row.assets.all())
    return {
        "backfill": backfill_row,
        "progress": progress,
        "timeline": timeline_of(backfill_row, database_now()),
        "most_runs_drawn": MOST_RUNS_DRAWN,
        "failures": failures_of(backfill_row) if progress.counts.failed else [],
        "skipped": skips_of(backfill_row) if progress.counts.skipped else [],
        "several_assets": len(asset_rows) > 1,
        "runs": list(backfill_row.group.runs.listed().order_by("-id")[:_RECENT_RUNS]),
    }


def _record_context(backfill_row: Backfill) -> dict[str, Any]:
    entries = AuditEntry.objects.filter(subject_type="backfill", subject=backfill_row.name)
    newest_entries = list(entries.order_by("-id")[: _MOST_ENTRIES + 1])
    trail = newest_entries[:_MOST_ENTRIES][::-1]
    times = (backfill_row.run_start_date, backfill_row.run_end_date, backfill_row.updated_at)
    shown = (backfill_row.state, times, [entry.pk for entry in trail])
    version = version_of(shown)
    return {
        "backfill": backfill_row,
        "trail": trail,
        "trail_cut": len(newest_entries) > _MOST_ENTRIES,
        "version": version,
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


def _frozen_codes(
    backfill_row: Backfill,
) -> list[tuple[BackfillAsset, str, BundleVersion | None]]:
    """Return the frozen code of each of the backfill's assets, without passwords; with the version
    of the bundle if a retry has put newer code in place of the code of the request.
    """
    asset_rows = backfill_row.assets.all()
    rows = ProducerVersion.objects.select_related("bundle_version").defer("bundle_version__archive")
    versions = rows.in_bulk({row.producer_version_id for row in asset_rows})
    codes: list[tuple[BackfillAsset, str, BundleVersion | None]] = []
    for asset_row in asset_rows:
        version = versions[asset_row.producer_version_id]
        # Versions have their ids in the order in which they were loaded.
        requested = backfill_row.code_version_id
        is_newer = requested is not None and version.bundle_version_id > requested
        newer = version.bundle_version if is_newer else None
        codes.append((asset_row, masked_text(version.source), newer))
    return codes
