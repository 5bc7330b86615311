"""Services that issue, list and revoke tokens for programs."""

from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from knox.models import AuthToken

from accounts_app import audit
from accounts_app.models import User
from accounts_app.services.locked_user import locked_user


class IssuedToken(NamedTuple):
    """The text of a new token, which is not stored, and the token's expiry."""

    token: str
    expiry: datetime | None


def issue_token(user: User, *, lifetime: timedelta | None = None) -> IssuedToken | None:
    """Create a token for a user who has just given the password; by default the token lives as long
    as the setting says.

    Return None if the account was deactivated, or if sessions and tokens have ended since the user
    was read.
    """
    with transaction.atomic():
        if (present := locked_user(user)) is None:
            return None
        expiry = {} if lifetime is None else {"expiry": lifetime}
        token, text = AuthToken.objects.create(user=present, **expiry)
        audit.record(present, "create", "token", token.token_key)
    return IssuedToken(text, token.expiry)


def revoke_token(token: AuthToken, *, by: User) -> None:
    """Delete the token, which then opens nothing any more."""
    with transaction.atomic():
        audit.record(by, "revoke", "token", token.token_key)
        token.delete()


def tokens_of(user: User) -> "QuerySet[AuthToken]":
    """Return the user's tokens that have not expired, newest first."""
    valid = Q(expiry__isnull=True) | Q(expiry__gt=timezone.now())
    tokens: QuerySet[AuthToken] = AuthToken.objects.filter(valid, user=user).order_by("-created")
    return tokens
