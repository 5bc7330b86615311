"""Deletion of expired sessions, tokens, sign-ins and idempotency keys, which no request reads any
more.
"""

from datetime import datetime
from typing import Any

from axes.models import AccessLog
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from knox.models import AuthToken

from accounts_app.models import IdempotentRequest
from accounts_app.services.sign_in_limits import KNOWN_FOR

# A step is a transaction. A call takes at most so many steps per table; the next call goes on.
_ROWS_PER_STEP = 1000
_MAX_STEPS = 100


def delete_expired_rows(now: datetime) -> None:
    """Delete expired sessions, tokens and idempotency keys, and sign-ins too old to make an
    address known.
    """
    _delete_in_steps(Session.objects.filter(expire_date__lt=now))
    _delete_in_steps(AuthToken.objects.filter(expiry__lt=now))
    _delete_in_steps(AccessLog.objects.filter(attempt_time__lt=now - KNOWN_FOR))
    old = now - IdempotentRequest.KEPT_FOR
    _delete_in_steps(IdempotentRequest.objects.filter(created_at__lt=old))


def _delete_in_steps(rows: "QuerySet[Any]") -> None:
    keys = rows.order_by("pk").values("pk")
    for _ in range(_MAX_STEPS):
        deleted_count, _ = rows.filter(pk__in=keys[:_ROWS_PER_STEP]).delete()
        if deleted_count < _ROWS_PER_STEP:
            return
