"""Authentication of programs by token; sessions of people are DRF's own."""

from typing import Any

from django.contrib.auth.models import AbstractUser
from knox.auth import TokenAuthentication as KnoxAuthentication
from rest_framework.exceptions import AuthenticationFailed


class TokenAuthentication(KnoxAuthentication):  # type: ignore[misc]
    """Authentication by ``Authorization: Bearer <token>``; tokens are stored hashed, and expire."""

    def authenticate_credentials(self, token: bytes) -> tuple[AbstractUser, Any]:
        # Tokens have no other characters; a control character would be an error of the database.
        if not token.isalnum() or not token.isascii():
            raise AuthenticationFailed("This is not a token: get one from /api/v1/tokens/.")
        user_and_token: tuple[AbstractUser, Any] = super().authenticate_credentials(token)
        return user_and_token
