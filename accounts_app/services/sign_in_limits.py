"""Limits on sign-in attempts: what is counted is kept by django-axes, in the database."""

from axes.models import AccessAttempt
from django.db import transaction

from accounts_app import audit
from accounts_app.models import User


def unlock(user: User, *, by: User) -> None:
    """Forget the failed attempts under the user's name, so that the user can sign in again."""
    with transaction.atomic():
        AccessAttempt.objects.filter(username=user.get_username()).delete()
        audit.record(by, "unlock", "user", user.get_username())
