"""Channels, alert rules, and deliveries."""

from datetime import datetime
from uuid import uuid4

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from slicewise_server.events.models import EventKind

# The only variables of a worker's environment that a channel may name: all others may be secrets
# of another kind.
VARIABLE_PREFIX = "SLICEWISE_ALERT_"
VARIABLE_PATTERN = rf"^{VARIABLE_PREFIX}[A-Z0-9_]+$"
VARIABLE_LENGTH = 100
VARIABLE_FORM = f"The name is {VARIABLE_PREFIX} with capital letters, digits and _ after it."
# Events of single runs, of which one backfill may have a million.
_OF_RUNS = (
    *(EventKind.RUN_FAILED, EventKind.RUN_RECOVERED),
    *(EventKind.VALIDATION_FAILED, EventKind.VALIDATION_WARNED),
)


def no_names() -> list[str]:
    """Return the default of a filter: no names, which means no restriction."""
    return []


class ChannelKind(models.TextChoices):
    WEBHOOK = "webhook", "Webhook"
    MESSAGE = "message", "Message by Apprise (mail, Slack, Teams, PagerDuty and others)"


class Channel(models.Model):
    """A place that alerts are sent to. The address is a secret: encrypted, or in a variable."""

    name = models.CharField(max_length=100, unique=True)
    kind = models.CharField(max_length=10, choices=ChannelKind)
    # The address, encrypted; empty where `variable` names a variable of the worker's environment.
    address = models.BinaryField(default=b"")
    variable = models.CharField(max_length=VARIABLE_LENGTH, blank=True, default="")
    # The address without secrets, for people.
    shown_address = models.CharField(max_length=500, blank=True, default="")
    # The key that signs the requests of a webhook, encrypted.
    signing_key = models.BinaryField(default=b"")
    active = models.BooleanField(default=True)
    # The last failure, emptied by a success; the next delivery is not tried before `retry_at`.
    error = models.TextField(blank=True, default="")
    failures = models.PositiveIntegerField(default=0)
    retry_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(
                condition=Q(variable="") | Q(variable__regex=VARIABLE_PATTERN),
                name="channel_variable",
            ),
        )

    def __str__(self) -> str:
        return self.name


class AlertRule(models.Model):
    """The events that a channel gets: by kind, and by the asset's name, group, tag or owner.

    An empty list of kinds means all kinds. Without names, groups, tags and owners the rule is for
    all assets, and for events without an asset; else for assets that at least one of them names,
    and for events without an asset whose kind the rule names.
    """

    name = models.CharField(max_length=100, unique=True)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="rules")
    kinds = models.JSONField(default=no_names)
    assets = models.JSONField(default=no_names)
    groups = models.JSONField(default=no_names)
    tags = models.JSONField(default=no_names)
    owners = models.JSONField(default=no_names)
    # Events of so many seconds become one message; 0 sends each event alone.
    gather_seconds = models.PositiveIntegerField(default=30)
    # Whether failed runs and validations of backfills count, and the ends of these failures;
    # otherwise the event of the backfill's end reports the failures, and no event the warnings.
    backfill_runs = models.BooleanField(default=False)
    active = models.BooleanField(default=True)
    # Whether definition files declare the rule; then no person changes or deletes it.
    declared = models.BooleanField(default=False, db_default=False)
    # The place in the feed up to which events are handled.
    position = models.BigIntegerField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @property
    def is_for_all(self) -> bool:
        """Whether the rule is for all assets and for events without an asset."""
        return not (self.assets or self.groups or self.tags or self.owners)

    @property
    def kind_labels(self) -> list[str]:
        """The labels of the kinds; a kind that this version does not have is its own label."""
        labels = dict(EventKind.choices)
        return [labels.get(kind, kind) for kind in self.kinds]

    @property
    def leaves_out_backfills(self) -> bool:
        """Whether the rule is for events of runs, but not of the runs of backfills."""
        return any(
            self.wants_kind(kind, of_backfill=False) and not self.wants_kind(kind, of_backfill=True)
            for kind in _OF_RUNS
        )

    def wants_kind(self, kind: str, *, of_backfill: bool) -> bool:
        """Return whether the rule is for events of a kind, of a backfill's run or not."""
        if kind in _OF_RUNS and of_backfill and not self.backfill_runs:
            return False
        return not self.kinds or kind in self.kinds


class DeliveryState(models.TextChoices):
    GATHERING = "gathering", "Gathering events"
    WAITING = "waiting", "Waiting"
    DELIVERED = "delivered", "Delivered"
    FAILED = "failed", "Given up"


UNSENT_STATES = (DeliveryState.GATHERING, DeliveryState.WAITING)


class Delivery(models.Model):
    """One message to one channel. Once the body is set, neither body nor id ever changes."""

    # The id that receivers see.
    key = models.UUIDField(default=uuid4, unique=True, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    rule = models.ForeignKey(
        AlertRule, null=True, on_delete=models.SET_NULL, related_name="deliveries"
    )
    rule_name = models.CharField(max_length=100, blank=True)
    state = models.CharField(max_length=10, choices=DeliveryState)
    # The first and the last event of the message; null for a test message.
    first_position = models.BigIntegerField(null=True)
    last_position = models.BigIntegerField(null=True)
    event_count = models.PositiveIntegerField(default=0)
    # {"title", "text", "events"}; null while events are gathered.
    body = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    # The time of the next try; while events are gathered, the time at which the message is closed.
    send_at = models.DateTimeField()
    # A delivery without success by then is given up.
    give_up_at = models.DateTimeField()
    # Until when a worker may be sending the message.
    claimed_until = models.DateTimeField(null=True)
    tries = models.PositiveIntegerField(default=0)
    # The last answer, or the error in place of an answer.
    status = models.PositiveIntegerField(null=True)
    answer = models.TextField(blank=True, default="")
    delivered_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "deliveries"
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("rule",), condition=Q(state="gathering"), name="delivery_gathers_once"
            ),
            models.CheckConstraint(
                condition=Q(state="gathering") | Q(body__isnull=False), name="delivery_has_body"
            ),
        )
        indexes = (
            models.Index(
                fields=("channel", "send_at"),
                condition=Q(state="waiting"),
                name="delivery_to_send",
            ),
            models.Index(
                fields=("send_at",), condition=Q(state="gathering"), name="delivery_to_close"
            ),
            models.Index(
                fields=("channel", "created_at"),
                condition=Q(state="failed", first_position__isnull=False),
                name="delivery_given_up",
            ),
        )

    def __str__(self) -> str:
        return str(self.key)

    @property
    def waits_for_channel(self) -> bool:
        """Whether the channel has failed and the message has had no try."""
        return self.channel.failures > 0 and not self.tries

    @property
    def next_try_at(self) -> datetime:
        """The earliest time of the next try, which a failing channel delays."""
        return max(self.send_at, self.channel.retry_at or self.send_at)
