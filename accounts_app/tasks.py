"""Tasks of accounts."""

from celery import shared_task
from django.utils import timezone

from accounts_app.services.expiry import delete_expired_rows


@shared_task(name="accounts_app.tasks.delete_expired")
def delete_expired() -> None:
    """Delete the sessions, tokens and sign-ins that have expired."""
    delete_expired_rows(timezone.now())
