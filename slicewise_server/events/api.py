"""The feed of events, which programs read on from where they stopped."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app.api.base import ApiView
from slicewise_server.events.feed import end_of_feed, events_after
from slicewise_server.events.models import EventKind, unknown_kind
from slicewise_server.events.serializers import EventPageSerializer, EventSerializer
from slicewise_server.serving.long_poll import ASK_AGAIN, POSITION
from slicewise_server.web.api.filtering import refuse_unknown_parameters
from slicewise_server.web.api.pages import PAGE_SIZE_SCHEMA, read_page_size
from slicewise_server.web.request_errors import InvalidRequest
from slicewise_server.web.storable import is_storable

# A web process that ends lets requests under way finish for 20 seconds.
LONGEST_WAIT_SECONDS = 15
_END = "end"
_PARAMETERS = {"after", "kind", "asset", "wait", "page_size"}
_MOST_DIGITS = 18

_EXAMPLE = OpenApiExample(
    "A failed run",
    {
        "cursor": "482",
        "results": [
            {
                "id": 482,
                "kind": "run_failed",
                "at": "2024-07-01T04:00:00Z",
                "asset": "daily_delays",
                "run": 17,
                "backfill": None,
                "bundle": "",
                "worker": "",
                "error": "ValueError: no rows for 2013-01-01",
                "detail": {
                    "trigger": "schedule",
                    "error_kind": "code",
                    "partitions": 1,
                    "selection": "2013-01-01",
                },
            }
        ],
    },
    response_only=True,
    status_codes=["200"],
)


class EventsView(ApiView):
    """Events of all assets, backfills, bundles and workers."""

    @extend_schema(
        operation_id="events_list",
        summary="Read the feed of events",
        parameters=[
            OpenApiParameter(
                "after",
                str,
                description="The `cursor` of the previous page. Without `after` the answer begins"
                " with the oldest event on record; `end` returns the cursor of the end, and no"
                " event.",
            ),
            OpenApiParameter(
                "kind",
                str,
                many=True,
                enum=EventKind.values,
                description="Kinds of events; all kinds without this parameter.",
            ),
            OpenApiParameter(
                "asset",
                str,
                many=True,
                description="Names of assets; all assets without this parameter.",
            ),
            OpenApiParameter(
                "wait",
                {"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT_SECONDS, "default": 0},
                description="Seconds to wait for an event if no event follows `after`"
                f" (at most {LONGEST_WAIT_SECONDS}).",
            ),
            OpenApiParameter(
                "page_size",
                PAGE_SIZE_SCHEMA,
                description="Events per page.",
            ),
        ],
        responses={200: EventPageSerializer},
        examples=[_EXAMPLE],
    )
    def get(self, request: Request) -> Response:
        """List events, the earliest first. No event is left out, and none is listed twice, by a
        client that gives the `cursor` of one page as `after` of the next. Every event is kept for
        some weeks (`EVENT_DAYS`).
        """
        refuse_unknown_parameters(request, _PARAMETERS)
        wait, size = _wait_seconds(request), read_page_size(request)
        kinds, assets = _kinds(request), _assets(request)
        text = request.query_params.get("after", "")
        if text == _END:
            return Response({"cursor": str(end_of_feed()), "results": []})
        # Of a poll that waits, the server has read up to a later position.
        position = _position(request.META.get(POSITION) or text)
        # The end is read before the events: an event that comes in between is not passed over.
        end = end_of_feed()
        events = list(events_after(position, kinds=kinds, assets=assets)[:size])
        reached = events[-1].position if events else max(position, end)
        body = {"cursor": str(reached), "results": EventSerializer(events, many=True).data}
        headers = {} if events or not wait else {ASK_AGAIN: f"{wait};{reached}"}
        return Response(body, headers=headers)


def _kinds(request: Request) -> list[str]:
    kinds = request.query_params.getlist("kind")
    if objection := unknown_kind(kinds):
        raise InvalidRequest({"kind": objection})
    return kinds


def _assets(request: Request) -> list[str]:
    assets = request.query_params.getlist("asset")
    if not all(map(is_storable, assets)):
        raise InvalidRequest({"asset": "Names hold no NUL or surrogate characters."})
    return assets


def _position(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise InvalidRequest({"after": "This is no cursor: take it from `cursor` of a page."})
    return int(text)


def _wait_seconds(request: Request) -> int:
    text: Any = request.query_params.get("wait", "0")
    if not (
        text.isascii() and text.isdigit() and len(text) <= 2 and int(text) <= LONGEST_WAIT_SECONDS
    ):
        raise InvalidRequest({"wait": f"Give whole seconds from 0 to {LONGEST_WAIT_SECONDS}."})
    return int(text)
