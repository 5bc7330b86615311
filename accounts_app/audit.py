"""Writer of the audit trail, called by services inside the transaction of the recorded write."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from accounts_app.models import AuditEntry, User


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a write: the client's address, and a function that returns the user."""

    address: str | None
    find_user: Callable[[], object]


# Set per request by the middleware; commands and tasks have no origin.
_origin: ContextVar[Origin | None] = ContextVar("origin", default=None)


@contextmanager
def request_from(address: str | None, find_user: Callable[[], object]) -> Iterator[None]:
    """Give all entries written inside the context the address and the user of a request."""
    token = _origin.set(Origin(address, find_user))
    try:
        yield
    finally:
        _origin.reset(token)


def is_in_request() -> bool:
    """Return whether the calling code runs while a request is answered."""
    return _origin.get() is not None


def requester() -> User | None:
    """Return the signed-in user who sent the present request, or None."""
    origin = _origin.get()
    user = origin.find_user() if origin else None
    return user if isinstance(user, User) else None


def _address() -> str | None:
    origin = _origin.get()
    return origin.address if origin else None


def record(
    user: User | None,
    action: str,
    subject_type: str,
    subject: str,
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Write an entry: the user, the action, the subject, and details that JSON can hold.

    None as the user stands for a person who is not signed in, and for a command of Django's.
    """
    AuditEntry.objects.create(
        actor=user if user and user.pk else None,
        actor_name=user.get_username() if user else "",
        action=action,
        subject_type=subject_type,
        subject=subject[:300],
        detail=dict(detail or {}),
        address=_address(),
    )


def record_many(
    user: User, action: str, subject_type: str, details: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write an entry for each subject in a mapping of names to details.

    One statement writes up to 2,000 entries.
    """
    AuditEntry.objects.bulk_create(
        (
            AuditEntry(
                actor=user if user.pk else None,
                actor_name=user.get_username(),
                action=action,
                subject_type=subject_type,
                subject=subject[:300],
                detail=dict(detail),
                address=_address(),
            )
            for subject, detail in details.items()
        ),
        batch_size=2000,
    )
