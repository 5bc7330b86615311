"""Receivers that record sign-ins, failed sign-ins and sign-outs of pages, admin site and API."""

from typing import Any

from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest

from accounts_app import audit
from accounts_app.models import User
from accounts_app.signals import sign_ins_ended

# An unknown name may be a password in the wrong field, and entries are permanent.
NO_SUCH_USER = "(no such user)"


@receiver(user_logged_in, dispatch_uid="accounts_app.record_sign_in")
def record_sign_in(user: User, **_: Any) -> None:
    """Record a sign-in by a request. Sessions that code creates are no sign-ins."""
    if audit.is_in_request():
        audit.record(user, "sign in", "user", user.get_username())


@receiver(user_logged_out, dispatch_uid="accounts_app.record_sign_out")
def record_sign_out(user: User | None, **_: Any) -> None:
    """Record that a person has signed out."""
    if user is not None and audit.is_in_request():
        audit.record(user, "sign out", "user", user.get_username())


@receiver(user_login_failed, dispatch_uid="accounts_app.record_failure")
def record_failure(
    credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any
) -> None:
    """Record a failed sign-in, and the lockout that follows the last allowed failure.

    Attempts during a lockout are not recorded: a stranger could fill the table.
    """
    if not audit.is_in_request() or getattr(request, "sign_in_refused", False):
        return
    name = str(credentials.get("username") or "")
    subject = name if User.objects.filter(username=name).exists() else NO_SUCH_USER
    audit.record(None, "fail to sign in", "user", subject)
    if getattr(request, "axes_locked_out", False):
        audit.record(None, "lock out", "user", subject)


@receiver(sign_ins_ended, dispatch_uid="accounts_app.record_end")
def record_end(user: User, cause: str, tokens: int, **_: Any) -> None:
    """Record that all sessions and tokens of a person have ended, and why."""
    detail = {"cause": cause, "tokens": tokens}
    actor = audit.requester()
    audit.record(actor, "end sessions and tokens", "user", user.get_username(), detail)


def keep_no_form_data(instance: Any, **_: Any) -> None:
    """Empty the query and the form of an attempt before axes stores the attempt.

    axes masks fields named `password` alone; forms have more fields with passwords, and a person
    may type a password into any field.
    """
    instance.get_data = instance.post_data = ""
