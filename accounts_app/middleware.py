"""Middleware for the origin of requests, unstorable addresses, and an unreachable database."""

import logging
from collections.abc import Callable

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts_app import audit
from slicewise_server.web.addresses import client_address
from slicewise_server.web.storable import is_storable

log = logging.getLogger(__name__)

_API = "/api/"


class AuditOriginMiddleware:
    """Middleware that keeps the user and the address of a request for audit entries."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with audit.request_from(client_address(request), lambda: request.user):
            return self.get_response(request)


class StorableAddressMiddleware:
    """Middleware that answers 400 to the address of a page with text that no row can hold.

    Such text cannot be compared with rows either. Addresses of the API pass: the API has answers of
    its own, in the words that programs read.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path_info.startswith(_API) or _is_storable(request):
            return self.get_response(request)
        return render(request, "400.html", status=400)


class DatabaseAwayMiddleware:
    """Middleware that answers 503 while the database is away: the page itself is not at fault."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Return the answer for a lost database; None leaves the error to Django: 500."""
        if not isinstance(error, OperationalError | InterfaceError):
            return None
        log.warning("database away", extra={"path": request.path_info, "error": str(error)})
        answer = render(request, "503.html", status=503, using=None)
        answer["Retry-After"] = "1"
        return answer


def _is_storable(request: HttpRequest) -> bool:
    texts = [text for name, values in request.GET.lists() for text in (name, *values)]
    return all(map(is_storable, [request.path_info, *texts]))
