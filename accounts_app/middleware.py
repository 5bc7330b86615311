"""Tells the audit trail where a request came from."""

from collections.abc import Callable

from axes.helpers import get_client_ip_address
from django.http import HttpRequest, HttpResponse

from accounts_app import audit


class AuditOriginMiddleware:
    """Keeps the client's address for the entries that are written while a request is answered.

    The address is the one that sign-in attempts are counted by, so a proxy is told apart once.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        token = audit.origin.set(get_client_ip_address(request) or None)
        try:
            return self.get_response(request)
        finally:
            audit.origin.reset(token)
