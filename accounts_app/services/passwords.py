"""Changes of passwords by the owners of accounts."""

from django.contrib.auth.hashers import check_password
from django.db import transaction
from django.views.decorators.debug import sensitive_variables

from accounts_app import audit
from accounts_app.models import User
from accounts_app.services.locked_user import locked_user
from slicewise_server.web.request_errors import ConflictingRequest

_CHANGED = "Your account has changed meanwhile: the password stays as it is. Sign in again."


@sensitive_variables()
def change_own_password(user: User, *, old: str, new: str) -> User:
    """Set a validated password, which ends all sessions and tokens of the user.

    Return the user as stored. Raise ConflictingRequest if an admin has set another password or has
    deactivated the account since the user was read, or if sessions and tokens have ended.
    """
    with transaction.atomic():
        present = locked_user(user)
        # A statement may have changed the password alone. This check stores no new hash.
        if present is None or not check_password(old, present.password):
            raise ConflictingRequest({"": _CHANGED})
        present.set_password(new)
        present.save(update_fields=["password"])
        audit.record(present, "change password", "user", present.get_username())
    return present
