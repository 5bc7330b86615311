"""The cells of a grid that a typed selection names, for the script that marks them."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from assets_app.queries.clock import database_now
from assets_app.queries.grid_selection import marks_of
from assets_app.views.assets import asset_for_page
from assets_app.views.partitions_tab import grid_request
from slicewise_server.web.request_errors import InvalidRequest


@login_required
@require_safe
def grid_marks(request: HttpRequest, name: str) -> HttpResponse:
    """Return runs of selected cells and the number of selected partitions, or the error."""
    asset = asset_for_page(name)
    selection = request.GET.get("selection", "")
    try:
        marks = marks_of(asset, grid_request(request), selection, database_now())
    except InvalidRequest as refused:
        return JsonResponse({"runs": [], "count": 0, "error": refused.errors["selection"][0]})
    return JsonResponse({"runs": marks.runs, "count": marks.count, "error": ""})
