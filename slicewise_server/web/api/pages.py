"""Cursor pages: the ``next`` link is right even if rows are inserted meanwhile."""

import base64
import binascii
import json
from typing import Any
from urllib.parse import urlencode

from django.db.models import Model
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from slicewise_server.web.request_errors import InvalidRequest
from slicewise_server.web.storable import read_json

PAGE_SIZE = 100
MAX_PAGE_SIZE = 1000
_LARGEST_NUMBER = 2**63 - 1
PAGE_SIZE_SCHEMA: dict[str, Any] = {
    "type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE, "default": PAGE_SIZE,
}  # fmt: skip
PARAMETERS: list[dict[str, Any]] = [
    {
        "name": "cursor",
        "in": "query",
        "required": False,
        "description": "Cursor of the page, from `next` of the page before; by default the first.",
        "schema": {"type": "string"},
    },
    {
        "name": "page_size",
        "in": "query",
        "required": False,
        "description": f"Results per page; {PAGE_SIZE} by default.",
        "schema": PAGE_SIZE_SCHEMA,
    },
]


def encode_cursor(position: object) -> str:
    """Return a position as text that fits into a URL."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def read_cursor(request: Request) -> Any:
    """Return the position of the request's cursor, None without a cursor; refuse nonsense."""
    text = request.query_params.get("cursor")
    return decode_cursor(text) if text else None


def decode_cursor(text: str) -> Any:
    """Return the position that a cursor stands for; raise InvalidRequest for nonsense."""
    try:
        position = read_json(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode())
    except (binascii.Error, ValueError):
        raise bad_cursor() from None
    components = position if isinstance(position, list) else [position]
    if position is not None and not all(map(_is_position, components)):
        raise bad_cursor()
    return position


def _is_position(component: object) -> bool:
    """Return whether a component of a cursor is text, or a number that a row can have."""
    return type(component) is str or (type(component) is int and 0 <= component <= _LARGEST_NUMBER)


def bad_cursor() -> InvalidRequest:
    """Return the error for a cursor that no page of this list has issued."""
    return InvalidRequest({"cursor": "This is no cursor of this list: take it from `next`."})


def read_page_size(request: Request) -> int:
    """Return the number of results that the request asks for."""
    text = request.query_params.get("page_size")
    if text is None:
        return PAGE_SIZE
    if not (
        text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= MAX_PAGE_SIZE
    ):
        raise InvalidRequest({"page_size": f"Give a whole number from 1 to {MAX_PAGE_SIZE}."})
    return int(text)


def next_link(request: Request, position: object | None) -> str | None:
    """Return the address of the page that begins at this position; None at the end."""
    if position is None:
        return None
    query = request.query_params.copy()
    query["cursor"] = encode_cursor(position)
    return request.build_absolute_uri(f"{request.path}?{urlencode(list(_pairs(query)))}")


def _pairs(query: Any) -> Any:
    return ((name, value) for name, values in query.lists() for value in values)


def page_response(request: Request, results: Any, position: object | None) -> Response:
    """Return one page of a list."""
    return Response({"next": next_link(request, position), "results": results})


class KeysetPages(BasePagination):
    """Pages by one unique column, which the view names in ``page_order`` (``-id`` by default)."""

    def paginate_queryset(
        self, queryset: Any, request: Request, view: APIView | None = None
    ) -> list[Any] | None:
        order: str = getattr(view, "page_order", "-id")
        field = order.lstrip("-")
        self.request = request
        size = read_page_size(request)
        if (position := read_cursor(request)) is not None:
            queryset = queryset.filter(
                **{_after(order): _require_type(queryset.model, field, position)}
            )
        rows = list(queryset.order_by(order)[: size + 1])
        self.position = getattr(rows[size - 1], field) if len(rows) > size else None
        return rows[:size]

    def get_paginated_response(self, data: Any) -> Response:
        return page_response(self.request, data, self.position)

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return paginated(schema)

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        return PARAMETERS


def paginated(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a page whose results have this schema."""
    return {
        "type": "object",
        "required": ["next", "results"],
        "properties": {
            "next": {
                "type": ["string", "null"],
                "format": "uri",
                "description": "Address of the next page; null on the last page.",
            },
            "results": schema,
        },
    }


def _after(order: str) -> str:
    return f"{order[1:]}__lt" if order.startswith("-") else f"{order}__gt"


def _require_type(model: type[Model], field: str, position: Any) -> Any:
    position_type = str if model._meta.get_field(field).get_internal_type() == "CharField" else int
    if type(position) is not position_type:
        raise bad_cursor()
    return position
