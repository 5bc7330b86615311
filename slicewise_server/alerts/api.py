"""Channels, alert rules and deliveries through the API."""

from uuid import UUID

import django_filters
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app import policy
from accounts_app.api.base import ApiList, ApiView, signed_in
from accounts_app.policy import Action
from slicewise_server.alerts import services
from slicewise_server.alerts.lookups import channel_named, delivery_with, rule_named
from slicewise_server.alerts.models import AlertRule, Channel, Delivery, DeliveryState
from slicewise_server.alerts.serializers import (
    AlertRuleChangeSerializer,
    AlertRuleFieldsSerializer,
    AlertRuleSerializer,
    ChannelChangeSerializer,
    ChannelFieldsSerializer,
    ChannelSerializer,
    DeliverySerializer,
    NewChannelSerializer,
)
from slicewise_server.web.api.filtering import WordsFilter
from slicewise_server.web.api.schema import problems


@extend_schema_view(get=extend_schema(summary="List channels"))
class ChannelsView(ApiList[Channel]):
    """All channels."""

    queryset = Channel.objects.all()
    serializer_class = ChannelSerializer
    page_order = "name"

    @extend_schema(
        operation_id="channels_create",
        summary="Create a channel",
        request=ChannelFieldsSerializer,
        responses={201: NewChannelSerializer},
    )
    def post(self, request: Request) -> Response:
        """Create a channel: a webhook, which gets each event as signed JSON, or an address of
        Apprise. The address is stored encrypted and never shown again.
        """
        policy.require(signed_in(request), Action.ADMINISTER)
        body = ChannelFieldsSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        channel, key = services.create_channel(**body.validated_data, user=signed_in(request))
        answer = dict(ChannelSerializer(channel).data)
        return Response(answer | ({"signing_key": key} if key else {}), status=201)


class ChannelView(ApiView):
    """One channel."""

    @extend_schema(
        operation_id="channels_read", summary="Read a channel", responses=ChannelSerializer
    )
    def get(self, request: Request, name: str) -> Response:
        """Return the channel, without secrets."""
        return Response(ChannelSerializer(channel_named(name)).data)

    @extend_schema(
        operation_id="channels_change",
        summary="Change a channel",
        request=ChannelChangeSerializer,
        responses={200: ChannelSerializer},
    )
    def patch(self, request: Request, name: str) -> Response:
        """Change the address, or pause the channel. Deliveries of a paused channel wait for up to a
        day after the event, and are then given up.
        """
        policy.require(signed_in(request), Action.ADMINISTER)
        channel = channel_named(name)
        body = ChannelChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        changed = services.change_channel(channel, **body.validated_data, user=signed_in(request))
        return Response(ChannelSerializer(changed).data)

    @extend_schema(
        operation_id="channels_delete",
        summary="Delete a channel",
        request=None,
        responses={204: None} | problems(409),
    )
    def delete(self, request: Request, name: str) -> Response:
        """Delete a channel that no alert rule uses, and its deliveries."""
        policy.require(signed_in(request), Action.ADMINISTER)
        services.delete_channel(channel_named(name), user=signed_in(request))
        return Response(status=204)


class ChannelTestView(ApiView):
    """Test messages."""

    @extend_schema(
        operation_id="channels_test",
        summary="Send a test message",
        request=None,
        responses={202: DeliverySerializer} | problems(409),
    )
    def post(self, request: Request, name: str) -> Response:
        """Queue a test message. The list of deliveries shows the answer, some seconds later. A
        paused channel sends no message.
        """
        policy.require(signed_in(request), Action.ALERTS)
        delivery = services.send_test(channel_named(name), user=signed_in(request))
        return Response(DeliverySerializer(delivery).data, status=202)


@extend_schema_view(get=extend_schema(summary="List alert rules"))
class AlertRulesView(ApiList[AlertRule]):
    """All alert rules."""

    queryset = AlertRule.objects.select_related("channel")
    serializer_class = AlertRuleSerializer
    page_order = "name"

    @extend_schema(
        operation_id="alert_rules_create",
        summary="Create an alert rule",
        request=AlertRuleFieldsSerializer,
        responses={201: AlertRuleSerializer},
    )
    def post(self, request: Request) -> Response:
        """Create a rule, which begins with the next event."""
        policy.require(signed_in(request), Action.ALERTS)
        body = AlertRuleFieldsSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        alert_rule = services.save_rule(None, body.validated_data, user=signed_in(request))
        return Response(AlertRuleSerializer(alert_rule).data, status=201)


class AlertRuleView(ApiView):
    """One alert rule."""

    @extend_schema(
        operation_id="alert_rules_read", summary="Read an alert rule", responses=AlertRuleSerializer
    )
    def get(self, request: Request, name: str) -> Response:
        """Return the rule."""
        return Response(AlertRuleSerializer(rule_named(name)).data)

    @extend_schema(
        operation_id="alert_rules_change",
        summary="Change an alert rule",
        request=AlertRuleChangeSerializer,
        responses={200: AlertRuleSerializer} | problems(409),
    )
    def patch(self, request: Request, name: str) -> Response:
        """Change the given fields. A rule that is active again begins with the next event. Of
        a rule that definition files declare only `active` can change.
        """
        policy.require(signed_in(request), Action.ALERTS)
        alert_rule = rule_named(name)
        body = AlertRuleChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        changed = services.save_rule(alert_rule, body.validated_data, user=signed_in(request))
        return Response(AlertRuleSerializer(changed).data)

    @extend_schema(
        operation_id="alert_rules_delete",
        summary="Delete an alert rule",
        request=None,
        responses={204: None} | problems(409),
    )
    def delete(self, request: Request, name: str) -> Response:
        """Delete a rule. Deliveries that it has made stay, and are sent."""
        policy.require(signed_in(request), Action.ALERTS)
        services.delete_rule(rule_named(name), user=signed_in(request))
        return Response(status=204)


class DeliveryFilter(django_filters.FilterSet):
    """Filters of the list of deliveries."""

    channel = django_filters.CharFilter(field_name="channel__name")
    alert_rule = django_filters.CharFilter(field_name="rule_name")
    state = WordsFilter(choices=DeliveryState.choices)


@extend_schema_view(get=extend_schema(summary="List deliveries"))
class DeliveriesView(ApiList[Delivery]):
    """Deliveries, the newest first."""

    queryset = Delivery.objects.select_related("channel")
    serializer_class = DeliverySerializer
    filterset_class = DeliveryFilter
    page_order = "-id"


class DeliveryResendView(ApiView):
    """Deliveries that are sent again."""

    @extend_schema(
        operation_id="deliveries_resend",
        summary="Send a delivery again",
        request=None,
        responses={202: DeliverySerializer} | problems(409),
    )
    def post(self, request: Request, delivery_id: UUID) -> Response:
        """Send the message again, with the same id and the same body."""
        policy.require(signed_in(request), Action.ALERTS)
        delivery = services.resend(delivery_with(delivery_id), user=signed_in(request))
        return Response(DeliverySerializer(delivery).data, status=202)
