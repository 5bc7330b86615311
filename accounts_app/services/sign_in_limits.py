"""Limits on sign-in attempts, the same for page, admin site and API.

django-axes keeps failures in the database, by name and address, until 15 minutes have passed
without another failure. A name is locked for an address. An address that tries many names is
slowed, and so is a name that is tried from many addresses. Neither slows a name at an address where
the owner of the name has signed in before.
"""

from datetime import datetime, timedelta
from math import ceil
from typing import Any

from axes.helpers import get_client_http_accept, get_client_path_info, get_client_user_agent
from axes.models import AccessAttempt, AccessLog
from django.conf import settings
from django.db import transaction
from django.db.models import Count, Max, Q, Sum
from django.http import HttpRequest
from django.utils import timezone

from accounts_app import audit
from accounts_app.models import User
from slicewise.texts import counted
from slicewise_server.web.addresses import limited_address

# Between two attempts for a slowed name, or from a slowed address.
PAUSE = timedelta(minutes=1)
# How long after a sign-in the address is known for the name.
KNOWN_FOR = timedelta(days=90)


def seconds_to_wait(name: str | None, address: str | None) -> int:
    """Return the seconds until this name may be tried from this address; 0 if at once."""
    now = timezone.now()
    counts = _count_failures(name, address, now)
    if (counts["of_pair"] or 0) >= settings.AXES_FAILURE_LIMIT:
        return _seconds_until(counts["pair_at"] + settings.AXES_COOLOFF_TIME, now)
    ends = []
    if counts["names"] >= settings.SIGN_IN_NAMES_PER_ADDRESS:
        ends.append(counts["address_at"] + PAUSE)
    if (counts["of_name"] or 0) >= settings.SIGN_IN_ATTEMPTS_PER_NAME:
        ends.append(counts["name_at"] + PAUSE)
    if not ends or _is_known(name, address, now):
        return 0
    return _seconds_until(max(ends), now)


def retry_after_seconds(request: HttpRequest) -> int:
    """Return the seconds for Retry-After: the full lockout for the failure that locks."""
    wait: int = getattr(request, "sign_in_wait", int(settings.AXES_COOLOFF_TIME.total_seconds()))
    return wait


def try_again_text(wait: int) -> str:
    """Return a sentence that says when to try again."""
    minutes = ceil(wait / 60)
    return f"Try again in {counted(minutes, 'minute')}."


def forget_failures(request: HttpRequest, user: User) -> None:
    """Reset the count of failures after the right password, where no session begins."""
    address = limited_address(request)
    AccessAttempt.objects.filter(username=user.get_username(), ip_address=address).delete()


def remember_address(request: HttpRequest, user: User) -> None:
    """Make the address known for the user's name, where no session begins.

    axes' own receiver of sign-ins would create a session.
    """
    AccessLog.objects.create(
        username=user.get_username(),
        ip_address=limited_address(request),
        user_agent=get_client_user_agent(request),
        http_accept=get_client_http_accept(request),
        path_info=get_client_path_info(request),
    )


def unlock(user: User, *, by: User) -> None:
    """Forget the failed attempts under the user's name, so that the user can sign in again."""
    with transaction.atomic():
        AccessAttempt.objects.filter(username=user.get_username()).delete()
        audit.record(by, "unlock", "user", user.get_username())


def _count_failures(name: str | None, address: str | None, now: datetime) -> dict[str, Any]:
    of_name, of_address = Q(username=name), Q(ip_address=address)
    recent = AccessAttempt.objects.filter(attempt_time__gt=now - settings.AXES_COOLOFF_TIME)
    counts: dict[str, Any] = recent.filter(of_name | of_address).aggregate(
        of_pair=Sum("failures_since_start", filter=of_name & of_address),
        pair_at=Max("attempt_time", filter=of_name & of_address),
        of_name=Sum("failures_since_start", filter=of_name),
        name_at=Max("attempt_time", filter=of_name),
        names=Count("username", filter=of_address, distinct=True),
        address_at=Max("attempt_time", filter=of_address),
    )
    return counts


def _is_known(name: str | None, address: str | None, now: datetime) -> bool:
    sign_ins = AccessLog.objects.filter(attempt_time__gt=now - KNOWN_FOR)
    is_known: bool = sign_ins.filter(username=name, ip_address=address).exists()
    return is_known


def _seconds_until(end: datetime, now: datetime) -> int:
    return max(0, ceil((end - now).total_seconds()))
