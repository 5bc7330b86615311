"""Validations: what an asset's data has to fulfil, before or after a run."""

from slicewise.validations.checking import check_all
from slicewise.validations.declaring import AssetValidation, validation
from slicewise.validations.result import Severity, ValidationResult

__all__ = ["AssetValidation", "Severity", "ValidationResult", "check_all", "validation"]
