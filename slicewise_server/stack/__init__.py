"""The embedded stack: PostgreSQL, Redis, Spark and our own processes, on one machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slicewise_server.stack.errors import StackError

if TYPE_CHECKING:
    from slicewise_server.stack.services import Services
    from slicewise_server.stack.stack import Stack

__all__ = ["Services", "Stack", "StackError"]


def __getattr__(name: str) -> Any:
    """Import what needs installed packages on first use: `slicewise doctor` runs without them."""
    if name == "Services":
        from slicewise_server.stack.services import Services

        return Services
    if name == "Stack":
        from slicewise_server.stack.stack import Stack

        return Stack
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
