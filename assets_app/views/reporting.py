"""The form that reports a write by another program."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from accounts_app.page_policy import person_of, posts_need
from accounts_app.policy import Action, may
from assets_app.execution.request.reporting import ReportedWrite, report_write
from assets_app.forms import ReportWriteForm
from assets_app.models import Asset
from assets_app.queries.clock import database_now
from assets_app.views.assets import asset_for_page, is_external
from assets_app.views.partitions import selection_preview
from partitions_app.labels import example_selection
from slicewise_server.web.request_errors import InvalidRequest


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@posts_need(Action.REPORT)
def report_page(request: HttpRequest, name: str) -> HttpResponse:
    """Render the form and a preview of the typed selection, or record the report."""
    asset = asset_for_page(name)
    form = _form(asset, request)
    if request.method == "POST" and form.is_valid():
        try:
            return _record_report(request, asset, form)
        except InvalidRequest as refused:
            form.refuse(refused)
    selection = request.POST.get("selection", request.GET.get("selection", ""))
    context = {
        "asset": asset,
        "form": form,
        "selected": selection_preview(asset, selection),
        "may_report": may(request.user, Action.REPORT) and is_external(asset),
    }
    template = "assets_app/report_write.html"
    if request.htmx and request.method == "GET":  # type: ignore[attr-defined]
        template += "#selected"
    return render(request, template, context, status=400 if request.method == "POST" else 200)


def _form(asset: Asset, request: HttpRequest) -> ReportWriteForm:
    definition = asset.definition
    is_partitioned = definition is not None
    if request.method == "POST":
        return ReportWriteForm(request.POST, partitioned=is_partitioned)
    initial_values = {"selection": request.GET.get("selection", "")}
    form = ReportWriteForm(initial=initial_values, partitioned=is_partitioned)
    if definition is not None:
        example = example_selection(definition, database_now())
        form.fields["selection"].widget.attrs["placeholder"] = example
    return form


def _record_report(request: HttpRequest, asset: Asset, form: ReportWriteForm) -> HttpResponse:
    values = form.cleaned_data
    write = ReportedWrite(
        asset=asset,
        selection=values.get("selection", ""),
        rows=values["rows"],
        bytes=values["bytes"],
        metadata=values["metadata"] or {},
    )
    report = report_write(write, user=person_of(request))
    count = report.partition_count
    if asset.definition is None:
        messages.success(request, f"Materialization of {asset.name} recorded.")
        return redirect("assets:whole", asset.name)
    counted = "1 partition" if count == 1 else f"{count:,} partitions"
    messages.success(request, f"Materialization of {counted} recorded.")
    if count == 1:
        return redirect("assets:partition", asset.name, report.selection)
    return redirect("assets:asset", asset.name)
