"""An empty catalogue: the pages right after the first start."""

from accounts_app.models import User
from tests.pages.page_list import Things


def fill(user: User) -> Things:
    """Add nothing; an administrator has signed in, and searches."""
    return {"word": "flights", "user": user.pk}
