"""Answers for errors that no view handled: a page for people, problem details below ``/api/``."""

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.template import loader

from slicewise_server.web.api.problems import body_too_large, problem_outside_views
from slicewise_server.web.request_errors import FilesRefused

_API = "/api/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the answer for a request that Django refuses to read (``handler400``)."""
    if isinstance(exception, RequestDataTooBig):
        return too_large(request)
    if isinstance(exception, FilesRefused):
        return _answer(request, 415, "No file is taken here.")
    return _answer(request, 400, "The request cannot be read.")


def too_large(request: HttpRequest) -> HttpResponse:
    """Return the answer for a body beyond the limit; no part of the body has been read."""
    return _answer(request, 413, body_too_large())


def server_error(request: HttpRequest) -> HttpResponse:
    """Return the answer for an unforeseen error (``handler500``).

    Django writes the traceback to the log. The answer says nothing about the error.
    """
    return _answer(
        request, 500, "The server failed on this request. The server's log has the error."
    )


def _answer(request: HttpRequest, status: int, detail: str) -> HttpResponse:
    if request.path_info.startswith(_API):
        return problem_outside_views(status, detail)
    # Without the request: a value that the page reads from the request may cause the error.
    page = loader.get_template(f"{status}.html").render({"detail": detail})
    return HttpResponse(page, status=status)
