"""Storage of validation results from a runner, which are as untrusted as the code in there."""

import json
import logging
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from assets_app.catalogue.texts import storable, storable_json
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.database import persist
from assets_app.models import Asset, ValidationResult

log = logging.getLogger(__name__)

MOST_RESULTS = 1000
_NAME_LENGTH, _TEXT_LENGTH, _OBSERVED_LENGTH = 200, 2000, 8000
_MOST_BRACKETS = 200


class ResultKeeper:
    """The store of one attempt's validation results, which are stored even if the run fails later.

    While the database is away, results wait for it as long as ``goes_on`` returns true.
    """

    def __init__(self, attempt: Attempt, goes_on: Callable[[], bool]) -> None:
        self._attempt, self._goes_on = attempt, goes_on
        self._count = 0

    def hear(self, message: Mapping[str, Any]) -> None:
        """Store the results of one message ``validated``; leave out content that is no result."""
        persist(lambda: self._assets, goes_on=self._goes_on)
        rows: list[ValidationResult] = []
        for content in message["results"] if isinstance(message["results"], list) else []:
            if self._count == MOST_RESULTS:
                log.warning("validation results left out", extra={"run": self._attempt.run.pk})
                break
            row = self._row(message, content)
            if row is not None:
                rows.append(row)
                self._count += 1
        persist(
            lambda: ValidationResult.objects.bulk_create(rows, ignore_conflicts=True),
            goes_on=self._goes_on,
        )

    def _row(self, message: Mapping[str, Any], content: Any) -> ValidationResult | None:
        match content:
            case {
                "name": str(name),
                "severity": str(severity),
                "passed": bool(passed),
                "evaluated": bool(evaluated),
                "message": str(text),
                "description": str(description),
            } if severity in ValidationResult.Severity:
                result = content
            case _:
                return None
        asset = self._assets.get(str(message["asset"]))
        if asset is None or message["when"] not in ValidationResult.When.values:
            return None
        return ValidationResult(
            attempt=self._attempt.row,
            position=self._count,
            asset_id=asset,
            when=message["when"],
            name=storable(name)[:_NAME_LENGTH],
            description=storable(description)[:_TEXT_LENGTH],
            severity=severity,
            passed=passed,
            evaluated=evaluated,
            message=storable(text)[:_TEXT_LENGTH],
            observed=_observed(result.get("observed")),
        )

    @cached_property
    def _assets(self) -> dict[str, int]:
        """The ids of the assets on which a run of this function may report, by name."""
        spec = self._attempt.run.producer_version.spec
        names = [*spec.outlet_names, *spec.upstream_names]
        return dict(Asset.objects.filter(name__in=names).values_list("name", "pk"))


def _observed(value: Any) -> Any:
    """Return the observed facts; an empty object for content that is too large or no facts."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return {}
    # Brackets bound the depth: a reader of the stored JSON may not survive a deep nesting.
    is_small = len(text) <= _OBSERVED_LENGTH and text.count("[") + text.count("{") < _MOST_BRACKETS
    return storable_json(value) if isinstance(value, dict) and is_small else {}
