"""Tokens for programs; sessions of people are DRF's own."""

from typing import Any

from django.contrib.auth.models import AbstractUser
from knox.auth import TokenAuthentication as KnoxAuthentication
from rest_framework.exceptions import AuthenticationFailed


class TokenAuthentication(KnoxAuthentication):  # type: ignore[misc]
    """``Authorization: Bearer <token>``, hashed in the database and expiring."""

    def authenticate_credentials(self, token: bytes) -> tuple[AbstractUser, Any]:
        # Only these are ever given out; a control character would be an error of the database.
        if not token.isalnum() or not token.isascii():
            raise AuthenticationFailed("This is not a token: get one from /api/v1/tokens/.")
        found: tuple[AbstractUser, Any] = super().authenticate_credentials(token)
        return found
