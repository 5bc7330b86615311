"""The embedded stack: PostgreSQL, Redis, Spark, and our own processes, on one machine, from wheels."""

from config.stack.errors import StackError
from config.stack.services import Services
from config.stack.stack import Stack

__all__ = ["Services", "Stack", "StackError"]
