"""Ticks of schedules, and pausing and unpausing assets."""

from datetime import UTC, datetime
from typing import Any

from django.db.models import Q
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app.api.base import ApiView, signed_in
from accounts_app.api.idempotency import execute_once
from assets_app.api.assets import asset_detail
from assets_app.catalogue.pausing import set_paused
from assets_app.models import Schedule, ScheduleTick
from assets_app.queries.lookups import asset_named
from assets_app.queries.ticks import ticks_of
from assets_app.scheduling.descriptions import describe_schedule
from assets_app.serializers import AssetDetailSerializer, TickSerializer
from slicewise_server.web.api.filtering import refuse_unknown_parameters
from slicewise_server.web.api.pages import (
    PARAMETERS,
    bad_cursor,
    page_response,
    read_cursor,
    read_page_size,
)
from slicewise_server.web.api.schema import IDEMPOTENCY_KEY, page_of

LARGEST_ID = 2**63 - 1


class TicksView(ApiView):
    """Recorded ticks of an asset's schedule."""

    @extend_schema(
        operation_id="assets_ticks",
        summary="List ticks of an asset's schedule",
        parameters=[
            OpenApiParameter(field["name"], field["schema"], description=field["description"])
            for field in PARAMETERS
        ],
        responses={200: page_of(TickSerializer)},
        examples=[
            OpenApiExample(
                "Two rows",
                {
                    "next": None,
                    "results": [
                        {
                            "id": 812,
                            "at": "2024-07-02T00:00:00Z", "last_at": "2024-07-02T00:00:00Z",
                            "count": 1, "reason": "", "queued": 24, "existing": 0,
                            "in_flight": 0, "superseded": 0, "runs_url": "/api/v1/runs/?tick=812",
                        },
                        {
                            "id": 789,
                            "at": "2024-07-01T01:00:00Z", "last_at": "2024-07-01T23:00:00Z",
                            "count": 23, "reason": "nothing_ended", "queued": 0, "existing": 0,
                            "in_flight": 0, "superseded": 0, "runs_url": "/api/v1/runs/?tick=789",
                        },
                    ],
                },
                response_only=True,
                status_codes=["200"],
            ),
        ],
    )  # fmt: skip
    def get(self, request: Request, name: str) -> Response:
        """List ticks, newest first. A row with `count` above 1 stands for consecutive ticks that
        queued nothing, since no window had ended, or since upstream partitions were missing or not
        newer; or for all ticks since the last handled tick, for example after the server was down.
        A schedule by assets alone has no ticks.
        """
        refuse_unknown_parameters(request, {"cursor", "page_size"})
        position, size = read_cursor(request), read_page_size(request)
        before = None if position is None else _tick_position(position)
        schedule = describe_schedule(asset_named(name))
        ticks = [] if schedule is None else _ticks(schedule.row, before, size + 1)
        last = ticks[size - 1] if len(ticks) > size else None
        following = None if last is None else [last.at.isoformat(), last.pk]
        return page_response(request, TickSerializer(ticks[:size], many=True).data, following)


def _ticks(
    schedule: Schedule, before: tuple[datetime, int] | None, most: int
) -> list[ScheduleTick]:
    ticks = ticks_of(schedule)
    if before is not None:
        before_time, before_id = before
        ticks = ticks.filter(Q(at__lt=before_time) | Q(at=before_time, pk__lt=before_id))
    return list(ticks[:most])


def _tick_position(position: Any) -> tuple[datetime, int]:
    match position:
        case [str(text), int(pk)] if 0 <= pk <= LARGEST_ID:
            try:
                tick_time = datetime.fromisoformat(text)
            except ValueError:
                raise bad_cursor() from None
            if tick_time.tzinfo is not None and tick_time.year in range(1000, 9000):
                # PostgreSQL reads no offset of 16 hours or more.
                return tick_time.astimezone(UTC), pk
    raise bad_cursor()


class _SettingPaused(ApiView):
    """Base of pausing and unpausing."""

    is_to_be_paused = True

    def _set(self, request: Request, name: str) -> Response:
        asset = asset_named(name)

        def act() -> Response:
            set_paused(asset, self.is_to_be_paused, user=signed_in(request))
            return Response(asset_detail(asset_named(name)))

        return execute_once(request, act)


class PauseView(_SettingPaused):
    """Pausing of an asset's schedule."""

    @extend_schema(
        operation_id="assets_pause",
        summary="Pause an asset",
        parameters=[IDEMPOTENCY_KEY],
        request=None,
        responses={200: AssetDetailSerializer},
    )
    def post(self, request: Request, name: str) -> Response:
        """Pause the asset, and all assets of the same function: the schedule queues nothing any
        more. Manual runs and backfills still work.
        """
        return self._set(request, name)


class UnpauseView(_SettingPaused):
    """Resumption of an asset's schedule."""

    is_to_be_paused = False

    @extend_schema(
        operation_id="assets_unpause",
        summary="Unpause an asset",
        parameters=[IDEMPOTENCY_KEY],
        request=None,
        responses={200: AssetDetailSerializer},
    )
    def post(self, request: Request, name: str) -> Response:
        """Unpause the asset, and all assets of the same function: the schedule goes on from now.
        Missed partitions need a backfill.
        """
        return self._set(request, name)
