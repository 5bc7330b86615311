"""Tokens for programs: issued for a user name and a password, revoked by the holder."""

import logging
from typing import Any

from axes.helpers import get_client_ip_address
from django.contrib.auth import authenticate
from drf_spectacular.utils import OpenApiExample, extend_schema
from knox.models import AuthToken
from redis.exceptions import RedisError
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import SimpleRateThrottle
from rest_framework.views import APIView

from accounts_app.api.base import ApiView, signed_in
from accounts_app.models import User
from accounts_app.serializers import CredentialsSerializer, TokenSerializer
from accounts_app.services.sign_in_limits import (
    forget_failures,
    remember_address,
    retry_after_seconds,
    try_again_text,
)
from accounts_app.services.tokens import issue_token, revoke_token
from slicewise_server.web.api.problems import problem
from slicewise_server.web.api.schema import problems
from slicewise_server.web.request_errors import ConflictingRequest

log = logging.getLogger(__name__)


class TokenRequestThrottle(SimpleRateThrottle):
    """Limit on guesses from one address; django-axes limits attempts on one account."""

    scope = "tokens"
    rate = "20/min"

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        if request.method != "POST":
            return None
        return f"throttle-tokens-{get_client_ip_address(request._request)}"

    def allow_request(self, request: Request, view: APIView) -> bool:
        try:
            return super().allow_request(request, view)
        except RedisError as error:
            # Without a counter in Redis the sign-in goes on: axes counts attempts in the database.
            log.warning("token_throttle_unavailable", extra={"error": str(error)})
            return True


class TokensView(ApiView):
    """Issue and revoke tokens."""

    throttle_classes = (TokenRequestThrottle,)

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        final = super().finalize_response(request, response, *args, **kwargs)
        final["Cache-Control"] = "no-store"  # proxies may not store a token
        return final

    def get_permissions(self):  # type: ignore[no-untyped-def]
        return [AllowAny()] if self.request.method == "POST" else super().get_permissions()

    def get_authenticators(self):  # type: ignore[no-untyped-def]
        # A stale token in the header must not keep a user from getting a new token.
        posting = self.request is not None and self.request.method == "POST"
        return [] if posting else super().get_authenticators()

    @extend_schema(
        operation_id="tokens_create",
        summary="Get a token",
        request=CredentialsSerializer,
        responses={201: TokenSerializer} | problems(401, 429),
        auth=[],
        examples=[
            OpenApiExample("Sign in", {"username": "ada", "password": "…"}, request_only=True),
            OpenApiExample(
                "A token",
                {"token": "5f0c…", "expiry": "2027-01-01T00:00:00Z"},
                response_only=True,
                status_codes=["201"],
            ),
        ],
    )
    def post(self, request: Request) -> Response:
        """Issue a token. Send the token as `Authorization: Bearer <token>`. The token is shown only
        in this answer, and expires.
        """
        credentials = CredentialsSerializer(data=request.data)
        credentials.is_valid(raise_exception=True)
        user = authenticate(request=request._request, **credentials.validated_data)
        if getattr(request._request, "axes_locked_out", False):
            # Without this line axes' middleware would replace the answer with a page.
            request._request.axes_locked_out = False  # type: ignore[attr-defined]
            wait = retry_after_seconds(request._request)
            sentence = f"Too many attempts. {try_again_text(wait)}"
            return problem(429, sentence, headers={"Retry-After": str(wait)})
        if not isinstance(user, User):
            return _refused()
        issued = issue_token(user)
        if issued is None:
            return _refused()
        forget_failures(request._request, user)
        remember_address(request._request, user)
        return Response(TokenSerializer(issued).data, status=201)

    @extend_schema(
        operation_id="tokens_revoke",
        summary="Revoke the token in use",
        request=None,
        responses={204: None} | problems(409),
    )
    def delete(self, request: Request) -> Response:
        """Revoke the token of the request. Every program that uses the token is signed out."""
        token = request.auth
        if not isinstance(token, AuthToken):
            raise ConflictingRequest(
                {"": "You are signed in by a session, which has no token: sign out on the page."}
            )
        revoke_token(token, by=signed_in(request))
        return Response(status=204)


def _refused() -> Response:
    sentence = "User name and password do not match."
    return problem(401, sentence, headers={"WWW-Authenticate": "Bearer"})
