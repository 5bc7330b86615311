"""The search in the errors of failed runs and of definition files, each bounded."""

from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.urls import reverse

from assets_app.models import Run, RunState
from assets_app.queries.error_groups import error_pattern
from assets_app.queries.pages import broken_bundles
from assets_app.queries.shown_errors import has_text, shown_error
from slicewise.texts import masked_text
from slicewise_server.home.search_hits import MOST_HITS, Hit, Section

# An index has the failed runs by their ends: only the latest runs of some days are read.
_SPAN = timedelta(days=7)
_MOST_RUNS = 500
_NOTE_LENGTH = 160


def failed_runs(text: str, now: datetime) -> Section:
    """Return the latest failed runs whose errors have a text, by asset and error: one statement."""
    since = now - _SPAN
    failed = Run.objects.filter(state=RunState.FAILED, ended_at__gte=since)
    latest = failed.order_by("-ended_at", "-pk").values_list("pk", "asset__name", "error")
    rows = list(latest[: _MOST_RUNS + 1])
    is_cut = len(rows) > _MOST_RUNS
    groups: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for pk, asset_name, error in rows[:_MOST_RUNS]:
        # A search does not find the secrets that pages mask, and takes as long for any text.
        if has_text(shown := shown_error(error), text):
            groups.setdefault((asset_name, error_pattern(error)), []).append((pk, shown))
    hits = [
        Hit(
            f"Run {runs[0][0]}",
            reverse("assets:run", args=[runs[0][0]]),
            f"{asset_name}, failed{_others(len(runs) - 1)}: {excerpt(runs[0][1], text)}",
        )
        for (asset_name, _), runs in list(groups.items())[:MOST_HITS]
    ]
    query = {"state": RunState.FAILED.value, "error": text, "ended_after": since.isoformat()}
    read = f"the latest {_MOST_RUNS:,} failed runs" if is_cut else "failed runs"
    all_url = f"{reverse('assets:runs')}?{urlencode(query)}"
    return Section(f"Errors of {read}, last 7 days", hits, all_url, is_cut)


def broken_files(text: str) -> Section:
    """Return the definition files with errors whose path or error has a text: one statement."""
    hits = []
    for bundle in broken_bundles():
        errors = bundle.current_version.import_errors if bundle.current_version else []
        messages = [(error["path"], error["message"]) for error in errors]
        for path, message in [*messages, *([(bundle.name, bundle.error)] if bundle.error else [])]:
            shown = masked_text(message)
            if has_text(path, text) or has_text(shown, text):
                note = f"bundle {bundle.name}: {excerpt(shown, text)}"
                hits.append(Hit(path, reverse("assets:bundles"), note))
    return Section("Definition files with errors", hits[:MOST_HITS], reverse("assets:bundles"))


def excerpt(shown: str, text: str) -> str:
    """Return the line of a text that has the searched text, cut; the first line if none has."""
    lines = shown.strip().splitlines() or [""]
    line = next((line for line in lines if has_text(line, text)), lines[0]).strip()
    begin = max(line.casefold().find(text.casefold()) - _NOTE_LENGTH // 2, 0)
    end = begin + _NOTE_LENGTH
    return f"{'…' * (begin > 0)}{line[begin:end]}{'…' * (end < len(line))}"


def _others(number: int) -> str:
    return f", and {number:,} more like it" if number else ""
