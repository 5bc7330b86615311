"""The walk of one call: the modules that a reader visits in order to follow the call."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

SERVER_PACKAGES = (
    "slicewise_server", "backfills_app", "assets_app", "partitions_app", "accounts_app",
)  # fmt: skip
# Python 3.11 has frames for comprehensions, later versions have none.
_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>"})


@dataclass(frozen=True)
class Walk:
    """Modules in the order of visits: a visit goes on while functions of the same module follow.

    Each function counts where it is called first, since a reader reads it once. To make a value of
    a class counts as a visit to the module of the class.
    """

    visits: tuple[str, ...]

    @property
    def modules(self) -> int:
        """The number of modules visited."""
        return len(set(self.visits))

    @property
    def returns(self) -> int:
        """The number of visits to a module that was visited and left before."""
        return len(self.visits) - self.modules


def walk_of(call: Callable[[], object], packages: tuple[str, ...] = SERVER_PACKAGES) -> Walk:
    """Make the call, and return the walk through modules of these packages."""
    visits: list[str] = []
    known_functions: set[CodeType] = set()

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_name in _COMPREHENSIONS:
            return
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in packages or code in known_functions:
            return
        known_functions.add(code)
        if not visits or visits[-1] != module:
            visits.append(module)

    earlier_profile = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(earlier_profile)
    return Walk(tuple(visits))
