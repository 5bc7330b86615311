"""Middleware for the origin of requests, unstorable addresses, and an unreachable database."""

import logging
from collections.abc import Callable
from http import HTTPStatus

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts_app import audit
from slicewise_server.web.addresses import client_address
from slicewise_server.web.storable import is_storable

log = logging.getLogger(__name__)

_API = "/api/"
# Read by static/connection.js.
_SIGN_IN_HEADER = "Slicewise-Sign-In"


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


class SessionEndMiddleware:
    """Middleware that answers 401 to a script of a page whose session has ended.

    The script would follow a redirect, and put the sign-in page into a part of the page. A header
    has the address of the sign-in page, which leads back to the page.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        htmx = request.htmx  # type: ignore[attr-defined]
        if not htmx or not _leads_to_sign_in(response):
            return response
        refusal = HttpResponse(status=401)
        page = htmx.current_url_abs_path or settings.LOGIN_REDIRECT_URL
        refusal[_SIGN_IN_HEADER] = redirect_to_login(page).url
        return refusal


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


def _leads_to_sign_in(response: HttpResponse) -> bool:
    is_redirect = response.status_code == HTTPStatus.FOUND
    return is_redirect and response["Location"].startswith(f"{settings.LOGIN_URL}?")
