"""People, what they were granted, the trail of what they did, and the answers that a repeated
request gets again.
"""

from django.conf import settings
from django.contrib.auth.models import AbstractUser, Group
from django.db import models
from django.db.models import Q


class User(AbstractUser):
    """A person who signs in. A model of our own from the first migration, so that it can grow."""


class Grant(models.Model):
    """A permission for one person, or for a group of people, on one asset or a group of assets.

    Assets and their groups by name, which is what they are known by in definition files: a group
    has no row, and an asset that comes back under its name is the same one.
    """

    class Permission(models.TextChoices):
        BACKFILL = "backfill", "Backfill"

    permission = models.CharField(
        max_length=20, choices=Permission, default=Permission.BACKFILL, db_collation="C"
    )
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="grants",
        help_text="Either one person,",
    )
    people = models.ForeignKey(
        Group,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        verbose_name="group of people",
        help_text="or all who are in this group.",
    )
    asset = models.CharField(
        max_length=250, blank=True, db_collation="C", help_text="Either the name of one asset,"
    )
    asset_group = models.CharField(
        max_length=200,
        blank=True,
        db_collation="C",
        help_text="or a group of assets, with all that are in it now or later.",
    )

    class Meta:
        ordering = ("asset_group", "asset", "id")
        constraints = (
            models.CheckConstraint(
                condition=Q(person__isnull=True) ^ Q(people__isnull=True),
                name="grant_to_one",
                violation_error_message="Name one person or one group of people.",
            ),
            models.CheckConstraint(
                condition=Q(asset="") ^ Q(asset_group=""),
                name="grant_on_one",
                violation_error_message="Name one asset or one group of assets.",
            ),
            models.CheckConstraint(
                condition=Q(permission__in=("backfill",)), name="grant_permission_known"
            ),
            models.UniqueConstraint(
                fields=("permission", "person", "people", "asset", "asset_group"),
                nulls_distinct=False,
                name="grant_once",
                violation_error_message="This is granted already.",
            ),
        )

    def __str__(self) -> str:
        on = f"group {self.asset_group}" if self.asset_group else self.asset
        return f"{self.person or self.people}: {self.permission} {on}"


class AuditEntry(models.Model):
    """One write by somebody: who, what, to what, when, from where. Never changed or deleted."""

    at = models.DateTimeField(auto_now_add=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="audit_entries"
    )
    # The name outlives the account.
    actor_name = models.CharField(max_length=150)
    action = models.CharField(max_length=40)
    subject_type = models.CharField(max_length=40)
    subject = models.CharField(max_length=300)
    detail = models.JSONField(default=dict)
    address = models.GenericIPAddressField(null=True)

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "audit entries"
        indexes = (models.Index(fields=("subject_type", "subject", "-id")),)

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor_name} {self.action} {self.subject}"


class IdempotentRequest(models.Model):
    """A write that came with an ``Idempotency-Key``, and the answer that the same again gets.

    Inserted before the write and committed with it, so that the unique key makes a second request
    wait for the first, and a first that failed leaves nothing.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    key = models.CharField(max_length=255, db_collation="C")
    # Digest of method, path and body: the same key with another request is a mistake of the caller.
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    answer = models.JSONField(null=True)
    location = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("user", "key"), name="idempotent_request_once"),
        )
        indexes = (models.Index(fields=("created_at",), name="idempotent_request_age"),)

    def __str__(self) -> str:
        return f"{self.user_id} {self.key}"
