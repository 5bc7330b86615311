"""Events of OpenLineage from other tools."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, PolymorphicProxySerializer, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app import policy
from accounts_app.api.base import ApiView, signed_in
from accounts_app.api.idempotency import execute_once
from accounts_app.policy import Action
from slicewise_server.lineage.received_runs import ReceivedRun
from slicewise_server.lineage.receiving import receive
from slicewise_server.lineage.serializers import (
    MOST_EVENTS,
    LineageAnswerSerializer,
    LineageEventSerializer,
    received_run,
)
from slicewise_server.web.api.problems import field_errors
from slicewise_server.web.api.schema import IDEMPOTENCY_KEY
from slicewise_server.web.api.serializers import json_kind
from slicewise_server.web.request_errors import FieldErrors, InvalidRequest

_EXAMPLE = OpenApiExample(
    "A completed run of Spark",
    {
        "eventType": "COMPLETE",
        "eventTime": "2024-07-01T04:00:00Z",
        "producer": "https://github.com/OpenLineage/OpenLineage/tree/1.40.0/integration/spark",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": "01906bd5-0a00-7c3e-8d62-111111111111"},
        "job": {"namespace": "imports", "name": "nightly.write_orders"},
        "inputs": [{"namespace": "postgres://shop:5432", "name": "shop.public.orders"}],
        "outputs": [{"namespace": "s3://lake", "name": "raw/orders/day=2024-06-30"}],
    },
    request_only=True,
)


_ONE_OR_SEVERAL = PolymorphicProxySerializer(
    component_name="LineageEvents",
    serializers=[LineageEventSerializer, LineageEventSerializer(many=True)],
    resource_type_field_name=None,
    many=False,
)


class LineageView(ApiView):
    """Events of OpenLineage, as clients of other tools send the events."""

    @extend_schema(
        operation_id="lineage_receive",
        summary="Receive an event of OpenLineage",
        parameters=[IDEMPOTENCY_KEY],
        request=_ONE_OR_SEVERAL,
        responses={200: LineageAnswerSerializer},
        examples=[_EXAMPLE],
    )
    def post(self, request: Request) -> Response:
        """Record an event of another tool, or a list of at most 100 events. Of a completed run, an
        output that is an asset declared with `Asset(...)` counts as a write of the partitions that
        a facet or the name of the dataset names. Inputs and outputs become edges. A run writes each
        selection of an asset once, however often the event is sent.
        """
        policy.require(signed_in(request), Action.REPORT)
        runs = _runs(request.data)

        def act() -> Response:
            received = receive(runs, user=signed_in(request))
            return Response(LineageAnswerSerializer(received).data)

        return execute_once(request, act)


def _runs(body: Any) -> list[ReceivedRun]:
    """Return the runs and jobs of a request. Raises InvalidRequest."""
    events = body if isinstance(body, list) else [body]
    if len(events) > MOST_EVENTS:
        raise InvalidRequest(
            {"": f"{len(events):,} events are more than one request may have ({MOST_EVENTS})."}
        )
    errors, runs = FieldErrors(), []
    for number, event in enumerate(events):
        prefix = f"{number}." if isinstance(body, list) else ""
        if not isinstance(event, dict):
            errors.add(prefix.rstrip("."), f"This must be an object, not {json_kind(event)}.")
            continue
        serializer = LineageEventSerializer(data=event)
        if serializer.is_valid():
            runs.append(received_run(serializer.validated_data, prefix))
            continue
        for field, sentences in field_errors(serializer.errors).items():
            errors.add(f"{prefix}{field}", *sentences)
    if errors.messages:
        raise InvalidRequest(errors.messages)
    return [run for run in runs if run is not None]
