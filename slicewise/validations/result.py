"""What evaluating a validation says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Severity", "ValidationFailedError", "ValidationResult", "refuse_failed"]

Severity = Literal["error", "warn"]


class ValidationFailedError(ValueError):
    """A validation of an inlet or an outlet failed; the message holds what each of them saw."""


@dataclass(frozen=True, kw_only=True)
class ValidationResult:
    """The outcome of one validation of one frame."""

    name: str
    severity: Severity
    passed: bool
    message: str
    """A sentence for people: what was seen, or why it could not be evaluated."""
    observed: Mapping[str, Any] = field(default_factory=dict)
    """Facts that JSON can hold, such as ``{"rows": 120, "failing": 3, "examples": [...]}``."""
    evaluated: bool = True
    """False when it could not be evaluated, and failed for that."""

    @property
    def blocks(self) -> bool:
        """Whether it stops a run: it failed, and is no mere warning."""
        return not self.passed and self.severity == "error"

    def to_json(self) -> dict[str, Any]:
        """As a runner reports it."""
        return {
            "name": self.name,
            "severity": self.severity,
            "passed": self.passed,
            "message": self.message,
            "observed": dict(self.observed),
            "evaluated": self.evaluated,
        }


def refuse_failed(results: Mapping[str, Sequence[ValidationResult]]) -> None:
    """Raise ValidationFailedError where a result blocks: a line for each, with its asset.

    ``results`` are by the name of the asset.
    """
    lines = [
        f"{asset} does not pass {result.name}: {result.message.splitlines()[0]}"
        for asset, listed in results.items()
        for result in listed
        if result.blocks
    ]
    if lines:
        raise ValidationFailedError("\n".join(lines))
