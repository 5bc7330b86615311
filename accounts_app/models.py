"""Models of accounts: people, grants, the audit trail, and answers kept for repeated requests."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Self

from django.conf import settings
from django.contrib.auth.models import AbstractUser, Group
from django.db import models, transaction
from django.db.models import F, Q
from django.utils.crypto import salted_hmac
from knox.models import AuthToken

from accounts_app.signals import sign_ins_ended

_SESSION_SALT = "accounts_app.models.User.session"
_WATCHED = frozenset({"password", "is_active"})


class User(AbstractUser):
    """A person who signs in, with sessions on the pages and tokens for programs.

    A new password, deactivation and "sign out everywhere" end all sessions and delete all tokens.
    """

    # Counts these events. Sessions hold a digest of the number, and end when the number grows.
    sign_in_generation = models.PositiveIntegerField(default=0, db_default=0, editable=False)

    # Values of the watched fields when this object last read or saved the row.
    _stored: Mapping[str, Any] = MappingProxyType({})

    @classmethod
    def from_db(cls, *args: Any, **kwargs: Any) -> Self:
        """Return the object of a row, which remembers the watched fields of the row."""
        user = super().from_db(*args, **kwargs)
        user._remember(_WATCHED)
        return user

    def refresh_from_db(self, *args: Any, **kwargs: Any) -> None:
        """Read the row, or some fields, again; Django loads deferred fields by this method."""
        super().refresh_from_db(*args, **kwargs)
        fields = kwargs.get("fields", args[1] if len(args) > 1 else None)
        self._remember(_WATCHED if fields is None else _WATCHED & set(fields))

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the row, and end sessions and tokens with a new password and with deactivation.

        A save that names no fields leaves the row's password and `is_active` unchanged unless this
        object has changed the value: the object may have been read long ago.
        """
        update_fields = kwargs.get("update_fields")
        # Django leaves out the deferred fields of an object where no fields are named.
        saved = {field.attname for field in self._meta.concrete_fields} - self.get_deferred_fields()
        watched = _WATCHED & set(saved if update_fields is None else update_fields)
        if self._state.adding or not watched:
            super().save(*args, **kwargs)
            self._remember(watched)
            return
        with transaction.atomic():
            stored_user = User.objects.select_for_update(no_key=True).get(pk=self.pk)
            if (
                self._is_rehashed(watched)
                and stored_user.sign_in_generation != self.sign_in_generation
            ):
                # The password has changed since this object was read: keep the new password.
                self._take(stored_user, {"password"})
                return
            if update_fields is None:
                self._take(stored_user, watched - self._changed(watched))
            cause = self._cause_to_end(stored_user, watched)
            self.sign_in_generation = stored_user.sign_in_generation + bool(cause)
            if update_fields is not None:
                kwargs["update_fields"] = {*update_fields, "sign_in_generation"}
            super().save(*args, **kwargs)
            self._remember(watched)
            if cause:
                self._delete_tokens(cause)

    def sign_out_everywhere(self) -> None:
        """End all sessions and delete all tokens."""
        with transaction.atomic():
            User.objects.filter(pk=self.pk).update(sign_in_generation=F("sign_in_generation") + 1)
            self.refresh_from_db(fields=["sign_in_generation"])
            self._delete_tokens("sign out everywhere")

    def _remember(self, names: Iterable[str]) -> None:
        loaded = {name: self.__dict__[name] for name in names if name in self.__dict__}
        self._stored = {**self._stored, **loaded}

    def _changed(self, names: Iterable[str]) -> set[str]:
        missing = object()
        return {name for name in names if self._stored.get(name, missing) != getattr(self, name)}

    def _take(self, row: "User", names: Iterable[str]) -> None:
        for name in names:
            setattr(self, name, getattr(row, name))
        self._remember(names)

    def _delete_tokens(self, cause: str) -> None:
        token_count, _ = AuthToken.objects.filter(user=self).delete()
        sign_ins_ended.send(User, user=self, cause=cause, tokens=token_count)

    def _cause_to_end(self, before: "User", saved: frozenset[str]) -> str:
        if "is_active" in saved and before.is_active and not self.is_active:
            return "deactivation"
        # An account without a password has neither sessions nor tokens.
        is_new = "password" in saved and before.password != self.password
        ends = is_new and before.has_usable_password() and not self._is_rehashed(saved)
        return "new password" if ends else ""

    def _is_rehashed(self, saved: frozenset[str]) -> bool:
        # To hash the same password again, Django saves only that column and clears the text.
        text = getattr(self, "_password", None)
        return saved == {"password"} and text is None and self.has_usable_password()

    def _get_session_auth_hash(self, secret: Any = None) -> str:
        # Generation 0 uses Django's own hash, so that an upgrade ends no session.
        django_hash: str = super()._get_session_auth_hash(secret)  # type: ignore[misc]
        if not self.sign_in_generation:
            return django_hash
        value = f"{self.sign_in_generation} {django_hash}"
        return salted_hmac(_SESSION_SALT, value, secret=secret, algorithm="sha256").hexdigest()


class Grant(models.Model):
    """A permission for one person, or for a group of people, on one asset or a group of assets.

    Grants hold the names of assets and groups, as definition files do: a group has no row, and an
    asset that comes back under its name is the same asset.
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
        target = f"group {self.asset_group}" if self.asset_group else self.asset
        return f"{self.person or self.people}: {self.permission} {target}"


class AuditEntry(models.Model):
    """The record of one write: actor, action, subject, time and address.

    The database refuses to change or delete entries (`migrations/_audit_trail.py`).
    """

    at = models.DateTimeField(auto_now_add=True)
    # The database sets the actor to null once the account is gone, and refuses any other change.
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.DO_NOTHING,
        related_name="audit_entries",
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

    @property
    def action_label(self) -> str:
        """The action in words: ``report_write`` is *Report write*."""
        return self.action.replace("_", " ").capitalize()


class IdempotentRequest(models.Model):
    """A write with an ``Idempotency-Key``, and the answer for a repetition of the request.

    The row is inserted before the write and committed with the write. So the unique key makes a
    second request wait for the first, and a failed first request leaves no row.
    """

    # How long the answer is repeated.
    KEPT_FOR = timedelta(hours=24)

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
