"""Rules that people write as functions of a frame."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from slicewise.errors import DefinitionError
from slicewise.platform_failures import is_platform_failure
from slicewise.texts.tracebacks import file_lines, one_line
from slicewise.validations.rule import CannotEvaluateError, Evaluation, FrameFacts, Rule

__all__ = ["FunctionRule", "check_function"]

Function = Callable[[Any], Any]


@dataclass(frozen=True)
class FunctionRule(Rule):
    """A rule that calls a function with the frame; equal to another rule of the same function."""

    function: Function
    kind: ClassVar[str] = "function"

    @property
    def needs_spark(self) -> bool:
        """Always False, because a unit test may call the function with any object."""
        return False

    def name(self) -> str:
        return self.function.__name__

    def description(self) -> str:
        return inspect.getdoc(self.function) or f"The function {self.name()} says so."

    def to_json(self) -> dict[str, Any]:
        return {"function": self.function.__qualname__}

    def evaluate(self, seen: Mapping[str, Any], facts: FrameFacts) -> Evaluation:
        try:
            returned = self.function(facts.frame)
        except AssertionError as error:
            return Evaluation(False, str(error) or f"An assertion of {self.name()} failed.")
        except Exception as error:
            if is_platform_failure(error):
                raise
            raise CannotEvaluateError(
                f"{self.name()} raised {one_line(error)}{self._code_line(error)}"
            ) from error
        if isinstance(returned, str) and returned.strip():
            return Evaluation(False, returned)
        if (
            returned is None
            or isinstance(returned, str)
            or (_is_truth_value(returned) and returned)
        ):
            return Evaluation(True, f"{self.name()} passes the data.")
        if _is_truth_value(returned):
            return Evaluation(False, f"{self.name()} returned False.")
        raise CannotEvaluateError(
            f"{self.name()} returned {_with_article(type(returned).__name__)}; return True or"
            " False, or a text that names the problem"
        )

    def _code_line(self, error: Exception) -> str:
        """Return the name and line of the function's file where the error was raised; empty if
        unknown.
        """
        file = Path(self.function.__code__.co_filename)
        lines = file_lines(error, file)
        return f" ({file.name}, line {lines[-1]})" if lines else ""


def check_function(function: object) -> None:
    """Raise DefinitionError for an object that is not a function of one frame."""
    if not inspect.isfunction(function):
        raise DefinitionError(f"@validation decorates a function, not {function!r}")
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise DefinitionError(
            f"{function.__name__} is async or yields; write plain def, and return the result"
        )
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        raise DefinitionError(
            f"{function.__name__} takes one argument, the DataFrame: def {function.__name__}(frame)"
        ) from None


def _is_truth_value(value: object) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")  # NumPy's, too


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"
