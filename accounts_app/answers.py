"""Answers for errors that no view has met: a page for people, problem details below ``/api/``."""

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.template import loader

from accounts_app.api.problems import body_too_large, problem_outside_views
from accounts_app.errors import FilesRefused

_API = "/api/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the answer for a request that Django refuses to read (``handler400``)."""
    if isinstance(exception, RequestDataTooBig):
        return too_large(request)
    if isinstance(exception, FilesRefused):
        return _answer(request, 415, "No file is taken here.")
    return _answer(request, 400, "The request cannot be read.")


def too_large(request: HttpRequest) -> HttpResponse:
    """Return the answer for a body beyond the limit, which nobody has read."""
    return _answer(request, 413, body_too_large())


def server_error(request: HttpRequest) -> HttpResponse:
    """Return the answer for an error that nobody foresaw (``handler500``).

    Django has its traceback written to the log. The answer tells nothing of it.
    """
    return _answer(request, 500, "Something broke on our side. It is in the server's log.")


def _answer(request: HttpRequest, status: int, detail: str) -> HttpResponse:
    if request.path_info.startswith(_API):
        return problem_outside_views(status, detail)
    # Without the request: what the page would ask of it may be what has failed.
    page = loader.get_template(f"{status}.html").render({"detail": detail})
    return HttpResponse(page, status=status)
