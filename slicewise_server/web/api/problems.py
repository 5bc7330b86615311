"""Errors as RFC 9457 problem details: per field, the mistake and the correction."""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from slicewise_server.web.request_errors import ConflictingRequest, FilesRefused, InvalidRequest

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
Errors = Mapping[str, Sequence[str]]


class KeyReused(exceptions.APIException):
    """An ``Idempotency-Key`` that came again with another request."""

    status_code = HTTPStatus.UNPROCESSABLE_ENTITY


def problem(
    status: int, detail: str, errors: Errors | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the answer for an error; ``errors`` per field, ``""`` for the request as a whole."""
    body = _body(status, detail)
    if errors is not None:
        body["errors"] = errors
    return Response(body, status=status, headers=headers, content_type=MEDIA_TYPE)


def problem_outside_views(status: int, detail: str) -> JsonResponse:
    """Return the answer for an error that no view of the API has handled."""
    return JsonResponse(_body(status, detail), status=status, content_type=MEDIA_TYPE)


def body_too_large() -> str:
    """Return the sentence for a body beyond the limit."""
    limit = f"{settings.DATA_UPLOAD_MAX_MEMORY_SIZE:,} bytes"
    return f"The body has more than {limit} (DATA_UPLOAD_MAX_MEMORY_SIZE)."


def _body(status: int, detail: str) -> dict[str, Any]:
    return {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "detail": detail,
    }


def answer_exception(error: Exception, context: dict[str, Any]) -> Response | None:
    """Return the answer for an exception of a view; None lets Django answer 500 and log."""
    answer = _answer(error)
    if answer is not None:
        set_rollback()
    return answer


def _answer(error: Exception) -> Response | None:
    match error:
        case InvalidRequest():
            conflict = isinstance(error, ConflictingRequest)
            status = HTTPStatus.CONFLICT if conflict else HTTPStatus.BAD_REQUEST
            return problem(status, _summary(error.errors), error.errors)
        case exceptions.ValidationError():
            errors = field_errors(error.detail)
            return problem(error.status_code, _summary(errors), errors)
        case RequestDataTooBig():
            return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, body_too_large())
        case FilesRefused():
            return problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send JSON: no file is taken here.")
        case Http404():
            sentence = str(error.args[0]) if error.args else "There is nothing at this address."
            return problem(HTTPStatus.NOT_FOUND, sentence)
        case PermissionDenied():
            return problem(HTTPStatus.FORBIDDEN, str(error) or "You may not do this.")
        case OperationalError() | InterfaceError():
            log.warning("database away", extra={"error": str(error)})
            sentence = "The database does not answer. Try again in a moment."
            return problem(HTTPStatus.SERVICE_UNAVAILABLE, sentence, headers={"Retry-After": "1"})
        case exceptions.APIException():
            return problem(error.status_code, str(error.detail), headers=_headers(error))
    return None


def _headers(error: exceptions.APIException) -> dict[str, str]:
    headers = {}
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    if (wait := getattr(error, "wait", None)) is not None:
        headers["Retry-After"] = str(math.ceil(wait))
    return headers


def _summary(errors: Errors) -> str:
    """Return one line that names each field, for people who look at ``detail`` alone."""
    return " ".join(
        f"{field}: {' '.join(sentences)}" if field else " ".join(sentences)
        for field, sentences in errors.items()
    )


def field_errors(detail: Any) -> Errors:
    """Return the sentences of DRF per field; the name of a nested field has dots."""
    return dict(_flatten(detail))


def _flatten(detail: Any, path: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield DRF's nested details as sentences per dotted field name."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            is_whole_request = name == "non_field_errors"
            yield from _flatten(inner, path if is_whole_request else f"{path}.{name}".lstrip("."))
    elif isinstance(detail, list) and any(isinstance(item, Mapping | list) for item in detail):
        for position, inner in enumerate(detail):
            yield from _flatten(inner, f"{path}.{position}".lstrip("."))
    else:
        sentences = detail if isinstance(detail, list) else [detail]
        yield path, [str(sentence) for sentence in sentences]
