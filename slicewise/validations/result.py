"""The result of evaluating a validation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Severity", "ValidationFailedError", "ValidationResult", "refuse_failed"]

Severity = Literal["error", "warn"]


class ValidationFailedError(ValueError):
    """A validation of an inlet or an outlet failed; the message has a line for each validation."""


@dataclass(frozen=True, kw_only=True)
class ValidationResult:
    """The outcome of one validation of one frame."""

    name: str
    severity: Severity
    passed: bool
    message: str
    """A sentence for people: the observation, or why the validation could not be evaluated."""
    observed: Mapping[str, Any] = field(default_factory=dict)
    """Facts that JSON can hold, such as ``{"rows": 120, "failing": 3, "examples": [...]}``."""
    evaluated: bool = True
    """False when the validation failed because it could not be evaluated."""

    @property
    def blocks(self) -> bool:
        """Whether the result stops a run: the validation failed and is not a mere warning."""
        return not self.passed and self.severity == "error"

    def to_json(self) -> dict[str, Any]:
        """Return the result as a runner reports it."""
        return {
            "name": self.name,
            "severity": self.severity,
            "passed": self.passed,
            "message": self.message,
            "observed": dict(self.observed),
            "evaluated": self.evaluated,
        }


def refuse_failed(results: Mapping[str, Sequence[ValidationResult]]) -> None:
    """Raise ValidationFailedError if a result blocks, with one line for each blocking result and
    its asset.

    ``results`` are keyed by the name of the asset.
    """
    lines = [
        f"{asset} does not pass {result.name}: {result.message.splitlines()[0]}"
        for asset, listed in results.items()
        for result in listed
        if result.blocks
    ]
    if lines:
        raise ValidationFailedError("\n".join(lines))
