"""Health of the server, for load balancers and supervisors, which do not sign in."""

import logging

import redis
from django.conf import settings
from django.db import Error, connection
from drf_spectacular.utils import OpenApiExample, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app.api.base import ApiView

log = logging.getLogger(__name__)
PATIENCE_SECONDS = 2
HEALTH_STATES = (("ok", "ok"), ("down", "down"))

Health = inline_serializer(
    "Health",
    {
        "status": serializers.ChoiceField(HEALTH_STATES),
        "database": serializers.ChoiceField(HEALTH_STATES),
        "broker": serializers.ChoiceField(HEALTH_STATES),
    },
)


class HealthView(ApiView):
    """The state of the database and of the broker."""

    authentication_classes = ()
    permission_classes = ()

    @extend_schema(
        operation_id="health",
        summary="Health",
        auth=[],
        responses={200: Health, 503: Health},
        examples=[
            OpenApiExample(
                "Well",
                {"status": "ok", "database": "ok", "broker": "ok"},
                response_only=True,
                status_codes=["200"],
            )
        ],
    )
    def get(self, request: Request) -> Response:
        """Return 503 if the database or the broker does not answer; the log has the reason."""
        states = {"database": _database(), "broker": _broker()}
        well = all(state == "ok" for state in states.values())
        return Response(
            {"status": "ok" if well else "down"} | states,
            status=200 if well else 503,
            headers={"Cache-Control": "no-store"},
        )


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error as error:
        log.error("database_down", extra={"error": str(error)})
        return "down"
    return "ok"


def _broker() -> str:
    try:
        with redis.Redis.from_url(
            settings.REDIS_URL,
            socket_connect_timeout=PATIENCE_SECONDS,
            socket_timeout=PATIENCE_SECONDS,
        ) as client:
            client.ping()
    except redis.RedisError as error:
        log.error("broker_down", extra={"error": str(error)})
        return "down"
    return "ok"
