"""The help page, which explains states of partitions and selections."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from partitions_app.state_badges import PARTITION_LOOKS


@login_required
@require_safe
def help_page(request: HttpRequest) -> HttpResponse:
    """Render the help on the looks of partitions and on the syntax of selections."""
    return render(request, "partitions_app/help.html", {"looks": PARTITION_LOOKS})
