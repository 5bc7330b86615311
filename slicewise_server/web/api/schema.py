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

_MEANINGS = {
    400: "Something in the request is wrong; `errors` says what, per field.",
    401: "Not signed in, or the token is unknown or has expired.",
    403: "Your role does not allow this.",
    404: "There is no such thing.",
    409: "It contradicts the present state.",
    413: "The body is too large.",
    422: "The `Idempotency-Key` came before, with another request.",
    429: "Too often; `Retry-After` says when to come back.",
}

IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="Any text of your own. The same request sent again with it within 24 hours"
    " is not done again and gets the same answer.",
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match",
    str,
    OpenApiParameter.HEADER,
    description="The `ETag` you have; 304 when nothing changed since.",
)


def problems(*statuses: int) -> dict[Any, OpenApiResponse]:
    """Return the descriptions of answers with these statuses, all problem details."""
    return {
        (status, "application/problem+json"): OpenApiResponse(ProblemSerializer, _MEANINGS[status])
        for status in statuses
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
    media_type="application/problem+json",
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
            "next": serializers.URLField(allow_null=True, help_text="The following page, if any."),
            "results": serializer(many=True),
        },
    )
    return OpenApiResponse(page)
