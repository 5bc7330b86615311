"""``Idempotency-Key``: a POST repeated because the answer got lost is not executed again."""

import hashlib
import json
from collections.abc import Callable

from django.db import transaction
from django.utils import timezone
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from accounts_app.api.base import signed_in
from accounts_app.models import IdempotentRequest, User
from slicewise_server.web.api.problems import KeyReused
from slicewise_server.web.request_errors import InvalidRequest

HEADER = "Idempotency-Key"


def execute_once(request: Request, act: Callable[[], Response]) -> Response:
    """Execute the request, or return the answer that the same request got before.

    One transaction holds the key and the write: a second request with the key waits for the first
    to end, and an error leaves no key, so that the request can be tried again.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return act()
    if not (key.isascii() and key.isprintable() and 1 <= len(key) <= 255):
        raise InvalidRequest({HEADER: "Give 1 to 255 printable ASCII characters."})
    user, fingerprint = signed_in(request), _fingerprint(request)
    with transaction.atomic():
        if not _claim(user, key, fingerprint):
            return _earlier_answer(user, key, fingerprint)
        response = act()
        IdempotentRequest.objects.filter(user=user, key=key).update(
            status=response.status_code,
            answer=json.loads(JSONRenderer().render(response.data)),
            location=response.headers.get("Location", ""),
        )
    return response


def _claim(user: User, key: str, fingerprint: str) -> bool:
    old = timezone.now() - IdempotentRequest.KEPT_FOR
    # Of this key alone: a transaction that deletes rows of other keys keeps the requests with
    # these keys waiting. A task deletes the other rows.
    IdempotentRequest.objects.filter(user=user, key=key, created_at__lt=old).delete()
    row = IdempotentRequest(user=user, key=key, fingerprint=fingerprint)
    # Waits here while another transaction holds the same key.
    IdempotentRequest.objects.bulk_create([row], ignore_conflicts=True)
    # With conflicts ignored the insert does not say whose the row is; an unanswered row is ours.
    return IdempotentRequest.objects.filter(user=user, key=key, status__isnull=True).exists()


def _earlier_answer(user: User, key: str, fingerprint: str) -> Response:
    earlier = IdempotentRequest.objects.get(user=user, key=key)
    if earlier.fingerprint != fingerprint:
        raise KeyReused(
            f"The {HEADER} {key!r} came before, with another request: use a new one for this."
        )
    headers = {"Idempotency-Replayed": "true"}
    if earlier.location:
        headers["Location"] = earlier.location
    return Response(earlier.answer, status=earlier.status, headers=headers)


def _fingerprint(request: Request) -> str:
    """Return a digest of the request, without white space and the order of names in the body."""
    content = [request.method, request.path, request.data]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
