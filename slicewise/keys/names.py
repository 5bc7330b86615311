"""The names of dimensions."""

import re

from slicewise.errors import DefinitionError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


def check_name(name: str | None) -> str | None:
    """Return a dimension's name that can be a column, a folder and a word of a selection.

    Raises DefinitionError.
    """
    if name is not None and (not isinstance(name, str) or not _NAME.fullmatch(name)):
        raise DefinitionError(f"{name!r} is no name for a dimension: use letters, digits and _")
    return name
