"""Writes the audit trail; called by services, inside the transaction of what they did."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from accounts_app.models import AuditEntry, User

# Set per request by the middleware; commands and tasks have no address.
origin: ContextVar[str | None] = ContextVar("origin", default=None)


def record(
    user: User,
    action: str,
    subject_type: str,
    subject: str,
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Leave an entry: who did what to which subject, with details that JSON can hold."""
    AuditEntry.objects.create(
        actor=user if user.pk else None,
        actor_name=user.get_username(),
        action=action,
        subject_type=subject_type,
        subject=subject[:300],
        detail=dict(detail or {}),
        address=origin.get(),
    )


def record_each(
    user: User, action: str, subject_type: str, details: Mapping[str, Mapping[str, Any]]
) -> None:
    """Leave an entry for each of several subjects, by name, with its details: one statement."""
    AuditEntry.objects.bulk_create(
        (
            AuditEntry(
                actor=user if user.pk else None,
                actor_name=user.get_username(),
                action=action,
                subject_type=subject_type,
                subject=subject[:300],
                detail=dict(detail),
                address=origin.get(),
            )
            for subject, detail in details.items()
        ),
        batch_size=2000,
    )
