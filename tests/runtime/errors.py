"""Errors that a call raises."""

from collections.abc import Callable

import pytest


def raised_by(act: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it raises is looked at
        act()
    return caught.value
