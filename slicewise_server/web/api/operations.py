"""The description of an operation, with the answers that follow from its view and its parameters.

A view names the answers that are particular to the view.
"""

from collections.abc import Iterator
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from drf_spectacular.openapi import AutoSchema
from rest_framework import serializers

from slicewise_server.web.api.schema import (
    IDEMPOTENCY_KEY,
    IF_NONE_MATCH,
    PROBLEM,
    PROBLEM_TYPE,
    described,
)
from slicewise_server.web.api.serializers import StrictSerializer

_ANY_OTHER = (
    "Any other error. 405: the address has no such method; 406: the answer is JSON alone; 408: the"
    " body came too slowly; 500: an error of Slicewise; 503: the database does not answer, or the"
    " server is busy, and `Retry-After` has the seconds to wait."
)
_TEXT = {"type": "string"}
_SECONDS = {"type": "integer", "minimum": 0}
_ETAG = {
    "schema": _TEXT,
    "description": "Name of the present state, for `If-None-Match` of a later request.",
}
_RETRY_AFTER = {"schema": _SECONDS, "description": "Seconds to wait."}
_REPLAYED = {
    "schema": {"type": "string", "enum": ["true"]},
    "description": "Present if this is the answer to an earlier request with the same key.",
}


class OperationSchema(AutoSchema):
    """The description of an operation of the API by drf-spectacular."""

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        """Return the description of an operation with all answers; None for a hidden view."""
        operation: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        if operation is None:
            return None
        answers = operation["responses"]
        for status in self._implied_statuses(operation):
            if str(status) not in answers:
                answers[str(status)] = self._answer(status)
        operation["responses"] = dict(sorted(answers.items())) | {
            "default": self._problem("default", _ANY_OTHER)
        }
        _add_headers(operation)
        return operation

    def _implied_statuses(self, operation: dict[str, Any]) -> Iterator[int]:
        parameter_kinds = {parameter["in"] for parameter in operation.get("parameters", ())}
        headers = _headers_of(operation)
        has_body = "requestBody" in operation
        if has_body or "query" in parameter_kinds or IDEMPOTENCY_KEY.name in headers:
            yield 400
        if self.view.get_authenticators():
            yield 401
            if self.method != "GET":
                yield 403
        if "path" in parameter_kinds:
            yield 404
        if has_body or IDEMPOTENCY_KEY.name in headers:
            yield from (413, 415)
        if IDEMPOTENCY_KEY.name in headers:
            yield 422
        if IF_NONE_MATCH.name in headers:
            yield 304

    def _answer(self, status: int) -> dict[str, Any]:
        if status == 304:
            return {"description": "Nothing has changed since the answer with this `ETag`."}
        return self._problem(str(status), described(status))

    def _problem(self, status: str, description: str) -> dict[str, Any]:
        answer: dict[str, Any] = self._get_response_for_code(  # type: ignore[no-untyped-call]
            PROBLEM, status, media_types=[PROBLEM_TYPE]
        )
        return answer | {"description": description}

    def _map_serializer_field(
        self, field: Any, direction: str, bypass_extensions: bool = False
    ) -> Any:
        if isinstance(field, serializers.ChoiceField) and field.read_only and _may_be_empty(field):
            # Django REST framework forgets that a column may be empty if nobody writes the field.
            field.allow_blank = True
        return super()._map_serializer_field(field, direction, bypass_extensions)  # type: ignore[no-untyped-call]

    def _map_basic_serializer(self, serializer: Any, direction: str) -> Any:
        schema = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        is_class = isinstance(serializer, type)
        if issubclass(serializer if is_class else type(serializer), StrictSerializer):
            schema["additionalProperties"] = False
        return schema


def _may_be_empty(field: serializers.ChoiceField) -> bool:
    """Return whether a field shows a column of its serializer's model that may be empty."""
    model = getattr(getattr(field.parent, "Meta", None), "model", None)
    if model is None:
        return False
    try:
        return bool(model._meta.get_field(field.source).blank)
    except FieldDoesNotExist:
        return False


def _headers_of(operation: dict[str, Any]) -> set[str]:
    """Return the names of the headers that a request may have."""
    parameters = operation.get("parameters", ())
    return {parameter["name"] for parameter in parameters if parameter["in"] == "header"}


def _add_headers(operation: dict[str, Any]) -> None:
    """Describe the headers of answers that tell a client how to go on."""
    headers = _headers_of(operation)
    for status, answer in operation["responses"].items():
        added = {}
        if IF_NONE_MATCH.name in headers and status in ("200", "304"):
            added["ETag"] = _ETAG
        if IDEMPOTENCY_KEY.name in headers and status.startswith("2"):
            added["Idempotency-Replayed"] = _REPLAYED
        if status in ("429", "default"):
            added["Retry-After"] = _RETRY_AFTER
        if added:
            answer["headers"] = answer.get("headers", {}) | added
