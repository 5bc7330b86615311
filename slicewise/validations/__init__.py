"""Validations: conditions on the data of an asset, checked before or after a run."""

from slicewise.validations.asset_validation import AssetValidation, validation
from slicewise.validations.checking import check_all, not_evaluated
from slicewise.validations.result import (
    Severity,
    ValidationFailedError,
    ValidationResult,
    refuse_failed,
)

__all__ = [
    "AssetValidation",
    "Severity",
    "ValidationFailedError",
    "ValidationResult",
    "check_all",
    "not_evaluated",
    "refuse_failed",
    "validation",
]
