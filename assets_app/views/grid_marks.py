"""The cells of a grid that a typed selection names, for the script that marks them."""

from collections.abc import Callable
from functools import partial

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from assets_app.queries.clock import database_now
from assets_app.queries.grid_selection import NO_MARKS, Marks, marks_of, selection_error
from assets_app.views.assets import asset_for_page
from assets_app.views.partitions_tab import grid_request
from slicewise_server.web.request_errors import InvalidRequest


@login_required
@require_safe
def grid_marks(request: HttpRequest, name: str) -> HttpResponse:
    """Return runs of selected cells and the number of selected partitions, or the error."""
    asset = asset_for_page(name)
    selection = request.GET.get("selection", "")
    return marks_answer(partial(marks_of, asset, grid_request(request), selection, database_now()))


def marks_answer(read_marks: Callable[[], Marks]) -> JsonResponse:
    """Return the answer to the script: the marks, or the error that reading the marks raises."""
    marks, error = NO_MARKS, ""
    try:
        marks = read_marks()
    except InvalidRequest as refused:
        error = selection_error(refused)
    text = {} if marks.text is None else {"text": marks.text}
    return JsonResponse({"runs": marks.runs, "count": marks.count, "error": error} | text)
