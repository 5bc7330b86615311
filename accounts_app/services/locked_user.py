"""The lock of a user's row for a change by the user."""

from accounts_app.models import User


def locked_user(user: User) -> User | None:
    """Return the user as stored, locked until the transaction ends.

    Return None for a deactivated account, or if sessions and tokens have ended since the user was
    read: a given password may be the old password by now.
    """
    rows = User.objects.select_for_update(no_key=True).filter(pk=user.pk, is_active=True)
    return rows.filter(sign_in_generation=user.sign_in_generation).first()
