"""Helpers for the API's description (OpenAPI 3.1 by drf-spectacular)."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    inline_serializer,
)
from rest_framework import serializers

from slicewise_server.web.api.serializers import ProblemSerializer

PROBLEM, PROBLEM_TYPE = ProblemSerializer, "application/problem+json"
_MEANINGS = {
    400: "The request is invalid; if fields or parameters are at fault, `errors` has sentences for"
    " each.",
    401: "Not signed in, or the token is unknown or has expired.",
    403: "Neither your role nor a grant allows this, or a session sent no CSRF token.",
    404: "The object does not exist.",
    409: "The request contradicts the present state.",
    413: "The body is too large.",
    415: "The body is no JSON.",
    422: "The `Idempotency-Key` was used before, with another request.",
    429: "Too many requests; `Retry-After` has the seconds to wait.",
}

IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="Any text of 1 to 255 printable ASCII characters. Within 24 hours of a success, a"
    " repeated request with the same key gets the same answer and has no further effect; a refused"
    " request may be repeated with the same key.",
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match",
    str,
    OpenApiParameter.HEADER,
    description="`ETag` of an earlier answer. The answer is 304 if nothing has changed since.",
)


def described(status: int) -> str:
    """Return the meaning of a status of problem details."""
    return _MEANINGS[status]


def problems(*statuses: int) -> dict[Any, OpenApiResponse]:
    """Return the descriptions of answers with these statuses, all problem details.

    A view names only statuses that do not follow from its parameters, its body and its sign-in.
    """
    return {
        (status, PROBLEM_TYPE): OpenApiResponse(PROBLEM, described(status)) for status in statuses
    }


NOT_FOUND_EXAMPLE = OpenApiExample(
    "No such asset",
    {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "There is no asset 'raw_flight'.",
    },
    response_only=True,
    status_codes=["404"],
    media_type=PROBLEM_TYPE,
)


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Description of the authentication by token."""

    target_class = "accounts_app.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer"}


def page_of(serializer: type[serializers.Serializer[Any]]) -> OpenApiResponse:
    """Return the schema of a page of results, for views that page without a queryset."""
    name = serializer.__name__.removesuffix("Serializer")
    page = inline_serializer(
        f"{name}Page",
        {
            "next": serializers.URLField(
                allow_null=True, help_text="Address of the next page, if any."
            ),
            "results": serializer(many=True),
        },
    )
    return OpenApiResponse(page)
