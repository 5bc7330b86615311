"""Adding and removing a runtime partition."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from accounts_app.models import User
from accounts_app.page_policy import posts_need
from accounts_app.policy import Action
from assets_app.execution.request.runtime_partitions import add_partitions, remove_partitions
from assets_app.views.assets import asset_for_page
from slicewise_server.web.request_errors import InvalidRequest


@login_required
@require_POST
@posts_need(Action.PARTITIONS)
def add(request: HttpRequest, name: str) -> HttpResponse:
    """Add one key to the runtime partitions of the asset."""
    asset, user = asset_for_page(name), request.user
    assert isinstance(user, User)  # noqa: S101  (login_required)
    typed = request.POST.get("key", "").strip()
    try:
        new = add_partitions(asset, [typed] if typed else [], user=user)
    except InvalidRequest as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, f"{typed} added." if new else f"{typed} already exists.")
    return redirect("assets:asset", name)


@login_required
@require_POST
@posts_need(Action.PARTITIONS)
def remove(request: HttpRequest, name: str) -> HttpResponse:
    """Remove one key from the runtime partitions of the asset."""
    asset, user = asset_for_page(name), request.user
    assert isinstance(user, User)  # noqa: S101  (login_required)
    key = request.POST.get("key", "")
    try:
        remove_partitions(asset, [key], user=user)
    except InvalidRequest as refused:
        messages.error(request, str(refused))
        return redirect("assets:partition", name, key) if key else redirect("assets:asset", name)
    messages.success(request, f"{key} removed; history is kept.")
    return redirect("assets:asset", name)
