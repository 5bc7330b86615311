"""The log of a run: new blocks, a search, and the whole log as a file."""

from collections.abc import Iterator
from itertools import chain

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from assets_app.models import TERMINAL_STATES, Run, RunLog
from assets_app.queries import pages
from assets_app.queries.log_attempts import AttemptLines, chunks_with_attempts
from assets_app.queries.log_search import AROUND, DEFAULT_AROUND, search_log
from assets_app.queries.run_logs import LEVELS, Cursor, cursor_text, log_after
from assets_app.views.runs import run_for_page
from slicewise.texts import masked_blocks
from slicewise_server.web.listing import STOP_POLLING, address_of
from slicewise_server.web.typed_ids import is_id

# A few rows at a time, each masked in blocks: the first bytes need not wait for the whole log.
_ROWS_AT_ONCE = 8


@login_required
@require_safe
def run_log(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the log after the reader's last block; polling stops after the end of the run."""
    run_row = run_for_page(pk)
    after = request.GET.get("after", "")
    cursor = _cursor(after)
    log, is_cut = log_after(run_row, cursor)
    ended = run_row.state in TERMINAL_STATES and not is_cut
    if not log and not ended:
        return HttpResponse(status=204)
    context = {
        "run": run_row,
        "log": list(chunks_with_attempts(log, cursor[0])),
        "after": cursor_text(log, after),
        "ended": ended,
        # The state of the attempt whose heading the reader has, once the attempt has ended.
        "ended_attempt": run_row.attempts.filter(number=cursor[0]).exclude(outcome="").first(),
    }
    status = STOP_POLLING if ended else 200
    return render(request, "assets_app/run.html#log", context, status=status)


@login_required
@require_safe
def run_log_search(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the lines of the log with a text or a level, the last ones first."""
    run_row = run_for_page(pk)
    level, text = request.GET.get("level", ""), request.GET.get("q", "").strip()
    before = request.GET.get("before", "")
    level = level if level in LEVELS else ""
    around = _around(request.GET.get("around", ""))
    matching = search_log(run_row, text, level, _cursor(before) if before else None, around)
    context = {
        "run": run_row,
        "run_label": f"Run {pk}",
        "passages": matching.passages,
        "line_count": matching.line_count,
        "before": f"{matching.before[0]}.{matching.before[1]}" if matching.before else "",
        "again": address_of(request, ("q", "level", "around")),
        "level": level,
        "levels": [(name, label) for name, (label, _) in LEVELS.items()],
        "around": around,
        "is_marked": bool(around and (text or level)),
        "around_choices": AROUND,
    }
    return render(request, "assets_app/run_log_search.html", context)


@login_required
@require_safe
def run_log_file(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """Return the whole log as a text file, or the log of one step of an attempt as a page."""
    run_row, step = run_for_page(pk), request.GET.get("step")
    rows = pages.whole_log(run_row)
    if step is None:
        blocks = _with_attempt_lines(run_row, rows)
    else:
        attempt = request.GET.get("attempt", "")
        rows = pages.step_log(run_row, int(attempt) if is_id(attempt) else 0, step)
        texts = rows.values_list("text", flat=True).iterator(chunk_size=_ROWS_AT_ONCE)
        blocks = chain.from_iterable(map(masked_blocks, texts))
    answer = StreamingHttpResponse(blocks, content_type="text/plain; charset=utf-8")
    if step is None:
        answer["Content-Disposition"] = f'attachment; filename="run-{pk}.log"'
    return answer


def _with_attempt_lines(run: Run, rows: QuerySet[RunLog]) -> Iterator[str]:
    """Yield the log in masked blocks, with a heading before each of several attempts."""
    headings = AttemptLines(run)
    texts = rows.values_list("attempt__number", "text").iterator(chunk_size=_ROWS_AT_ONCE)
    for number, text in texts:
        if heading := headings.before(number, text):
            yield heading
        yield from masked_blocks(text)


def _around(text: str) -> int:
    """Return the chosen number of lines around a match."""
    return next((number for number in AROUND if text == str(number)), DEFAULT_AROUND)


def _cursor(text: str) -> Cursor:
    attempt, _, sequence = text.partition(".")
    return (int(attempt), int(sequence)) if is_id(attempt) and is_id(sequence) else (0, 0)
