"""Changes of passwords by their owners."""

from django.db import transaction

from accounts_app import audit
from accounts_app.models import User


def change_own_password(user: User, password: str) -> None:
    """Set a password that has been validated; all sessions and tokens of the user end."""
    with transaction.atomic():
        user.set_password(password)
        # Alone: an admin may have deactivated the account meanwhile.
        user.save(update_fields=["password"])
        audit.record(user, "change password", "user", user.get_username())
