"""People, what they were granted, the trail of what they did, and the answers that a repeated
request gets again.
"""

from collections.abc import Iterable, Mapping
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

    # The number of these events. Sessions hold a digest of the number, and end when it grows.
    sign_in_generation = models.PositiveIntegerField(default=0, db_default=0, editable=False)

    # The watched fields as this object has last read or saved them.
    _stored: Mapping[str, Any] = MappingProxyType({})

    @classmethod
    def from_db(cls, *args: Any, **kwargs: Any) -> Self:
        """Return the object of a row, which remembers the watched fields of the row."""
        user = super().from_db(*args, **kwargs)
        user._remember(_WATCHED)
        return user

    def refresh_from_db(self, *args: Any, **kwargs: Any) -> None:
        """Read the row again, or some of the fields; this also loads a deferred field."""
        super().refresh_from_db(*args, **kwargs)
        fields = kwargs.get("fields", args[1] if len(args) > 1 else None)
        self._remember(_WATCHED if fields is None else _WATCHED & set(fields))

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save, and end sessions and tokens with a new password and with deactivation.

        A save that names no fields leaves the password and `is_active` of the row as they are,
        unless this object has changed them: the object may have been read long ago.
        """
        named = kwargs.get("update_fields")
        # Django leaves out the deferred fields of an object where no fields are named.
        saved = {field.attname for field in self._meta.concrete_fields} - self.get_deferred_fields()
        watched = _WATCHED & set(saved if named is None else named)
        if self._state.adding or not watched:
            super().save(*args, **kwargs)
            self._remember(watched)
            return
        with transaction.atomic():
            before = User.objects.select_for_update().get(pk=self.pk)
            if self._is_rehashed(watched) and before.sign_in_generation != self.sign_in_generation:
                # The password has changed since this object was read: keep the new password.
                self._take(before, {"password"})
                return
            if named is None:
                self._take(before, watched - self._changed(watched))
            cause = self._cause_to_end(before, watched)
            self.sign_in_generation = before.sign_in_generation + bool(cause)
            if named is not None:
                kwargs["update_fields"] = {*named, "sign_in_generation"}
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
        read = {name: self.__dict__[name] for name in names if name in self.__dict__}
        self._stored = {**self._stored, **read}

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
        # To hash the same password anew, Django saves only that column and clears the text.
        text = getattr(self, "_password", None)
        return saved == {"password"} and text is None and self.has_usable_password()

    def _get_session_auth_hash(self, secret: Any = None) -> str:
        # Of generation 0 it is Django's own, so that an upgrade ends no session.
        plain: str = super()._get_session_auth_hash(secret)  # type: ignore[misc]
        if not self.sign_in_generation:
            return plain
        value = f"{self.sign_in_generation} {plain}"
        return salted_hmac(_SESSION_SALT, value, secret=secret, algorithm="sha256").hexdigest()


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
    """One write by somebody: who, what, to what, when, from where.

    The database refuses to change or delete entries (migration 0004).
    """

    at = models.DateTimeField(auto_now_add=True)
    # The database sets it to null once the account is gone, and refuses any other change.
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
