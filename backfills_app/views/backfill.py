"""The page of one backfill, and the parts of it that change by themselves."""

import json
from collections.abc import Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts_app.models import AuditEntry
from assets_app.views.listing import STOP_POLLING, unchanged
from backfills_app.models import AssetRole, Backfill, BackfillAsset
from backfills_app.queries.failures import failures_of
from backfills_app.queries.pace import MOST_RUNS_DRAWN
from backfills_app.queries.partitions import interesting_position, partitions_from
from backfills_app.queries.skips import lacks_upstream
from backfills_app.services.skipping import skips_of
from backfills_app.views.allowed import reaches_of
from backfills_app.views.progress import Progress, part_progress, progress_with_pace
from backfills_app.views.timeline import timeline_of
from partitions_app.grid_cells import Cell, room_for
from partitions_app.grid_lists import longest_segment
from partitions_app.labels import label_of
from partitions_app.looks import PARTITION_LOOKS, look_of_wanted
from slicewise.masking import masked_text

TEMPLATE = "backfills_app/backfill.html"
_RECENT_RUNS = 10
_MOST_ENTRIES = 50
_LONGEST_WINDOW = len("2013-01-01T00:00+00:00|")
_NO_LOOKS = ("stale", "not-yet-due")


@login_required
@require_safe
def backfill(request: HttpRequest, pk: int) -> HttpResponse:
    """One backfill: progress, partitions, runs, failures, and who did what to it."""
    found, progress = _backfill(pk)
    trail = AuditEntry.objects.filter(subject_type="backfill", subject=found.name)
    context = {
        **_moving(request, found, progress),
        **_details(found, progress),
        **_cells(request, found, progress),
        "codes": _codes(found),
        "by_role": _by_role(found),
        "params": [
            (name, json.dumps(value, ensure_ascii=False)) for name, value in found.params.items()
        ],
        "trail": trail.order_by("id")[:_MOST_ENTRIES],
        "looks": [look for look in PARTITION_LOOKS if look.name not in _NO_LOOKS],
    }
    return render(request, TEMPLATE, context)


@login_required
@require_safe
def backfill_progress(request: HttpRequest, pk: int) -> HttpResponse:
    """How far it is, and what can be done with it."""
    found, progress = _backfill(pk)
    if answer := unchanged(request, progress.version):
        return answer
    context = _moving(request, found, progress)
    return render(request, f"{TEMPLATE}#progress", context, status=_status(found))


@login_required
@require_safe
def backfill_details(request: HttpRequest, pk: int) -> HttpResponse:
    """What has become of it so far: timeline, failures, what was skipped, latest runs."""
    found, progress = _backfill(pk)
    if answer := unchanged(request, progress.version):
        return answer
    context = _details(found, progress)
    return render(request, f"{TEMPLATE}#details", context, status=_status(found))


@login_required
@require_safe
def backfill_cells(request: HttpRequest, pk: int) -> HttpResponse:
    """The partitions of one page of the grid."""
    found, progress = _backfill(pk)
    if answer := unchanged(request, progress.version):
        return answer
    context = _cells(request, found, progress)
    return render(request, f"{TEMPLATE}#cells", context, status=_status(found))


def _status(found: Backfill) -> int:
    return STOP_POLLING if found.ended else 200


def _backfill(pk: int) -> tuple[Backfill, Progress]:
    rows = Backfill.objects.recorded().select_related("code_version__bundle")
    found = get_object_or_404(rows.defer("code_version__archive"), pk=pk)
    return found, progress_with_pace([found])[0]


def _moving(request: HttpRequest, found: Backfill, progress: Progress) -> dict[str, Any]:
    parts: Sequence[BackfillAsset] = list(found.assets.all())
    upstream = lacks_upstream(parts)
    return {
        "backfill": found,
        "progress": progress,
        "parts": [part_progress(found, part) for part in parts] if len(parts) > 1 else [],
        "allowed": reaches_of(request).over(progress, skipped_upstream=upstream),
    }


def _details(found: Backfill, progress: Progress) -> dict[str, Any]:
    parts = list(found.assets.all())
    return {
        "backfill": found,
        "progress": progress,
        "timeline": timeline_of(found, timezone.now()),
        "most_runs_drawn": MOST_RUNS_DRAWN,
        "failures": failures_of(found) if progress.counts.failed else [],
        "skipped": skips_of(found) if progress.counts.skipped else [],
        "several_assets": len(parts) > 1,
        "runs": list(found.group.runs.listed().order_by("-id")[:_RECENT_RUNS]),
    }


def _cells(request: HttpRequest, found: Backfill, progress: Progress) -> dict[str, Any]:
    parts = list(found.assets.all())
    part = next((one for one in parts if str(one.pk) == request.GET.get("part")), None)
    first_chosen = next((one for one in parts if one.asset_id == found.asset_id), None)
    part = part or first_chosen or next(iter(parts), None)
    context = {"backfill": found, "cells": [], "cells_part": part, "cells_parts": parts}
    context["cells_version"] = progress.version
    if part is None:
        return context
    rule = part.asset.definition
    # Each has the address of its asset, and its label beside its key.
    longest = "x" * (_LONGEST_WINDOW + len(part.asset.name) // 3)
    size = room_for(longest + (longest_segment(rule) if rule is not None else ""), copies=3)
    asked = request.GET.get("from", "")
    if asked.isdecimal() and len(asked) < 10:
        first = max(int(asked) - 1, 0)
    else:
        first = max(interesting_position(part, found.order) - size // 2, 0)
    page = partitions_from(part, first, size)
    cells = [
        Cell(
            look_of_wanted(row.state, row.run_state),
            row.key,
            label_of(rule, row.key),
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


def _by_role(found: Backfill) -> list[tuple[str, list[BackfillAsset]]]:
    """Its assets by the reason for which they are made, chosen ones first."""
    parts = list(found.assets.all())
    by_role = [(role.label, [part for part in parts if part.role == role]) for role in AssetRole]
    shown = [(label, some) for label, some in by_role if some]
    if len(parts) == 1:
        return [("Asset", parts)]
    return shown


def _codes(found: Backfill) -> list[tuple[BackfillAsset, str]]:
    """The code of each of its assets, as it was frozen, without passwords."""
    versions = {
        version.pk: version.source
        for part in found.assets.all()
        if (version := part.producer_version)
    }
    return [(part, masked_text(versions[part.producer_version_id])) for part in found.assets.all()]
