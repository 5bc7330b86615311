"""Users of this host."""

import pwd


def user_named(text: str) -> pwd.struct_passwd | None:
    """Return the user whose name or number the text is; None if this host has no such user."""
    try:
        return pwd.getpwuid(int(text)) if text.isdecimal() else pwd.getpwnam(text)
    except KeyError:
        return None
