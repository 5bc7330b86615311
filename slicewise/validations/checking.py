"""Evaluation of the validations of one frame together, in as few Spark jobs as possible."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from slicewise.platform_failures import is_platform_failure
from slicewise.texts.masking import masked_text
from slicewise.validations.result import Severity, ValidationResult
from slicewise.validations.rule import (
    CannotEvaluateError,
    Column,
    Evaluation,
    Frame,
    FrameFacts,
    Rule,
)

__all__ = ["check_all", "not_evaluated"]

_ERROR_LENGTH = 500


class NamedRule(Protocol):
    """A rule with a name and a severity: the part of an `AssetValidation` that is evaluated."""

    @property
    def rule(self) -> Rule:
        """The rule to evaluate."""

    @property
    def name(self) -> str:
        """The name in results."""

    @property
    def severity(self) -> Severity:
        """Whether a failure blocks the run."""


@dataclass(frozen=True)
class _Plan:
    """The aggregates measured for one validation, and their source frame; or the problem that
    prevents measuring.
    """

    validation: NamedRule
    source: Frame = None
    measures: Mapping[str, Column] | None = None
    problem: str | None = None


def check_all(
    frame: Frame,
    validations: Iterable[NamedRule],
    *,
    now: datetime | None = None,
    materialized_at: datetime | None = None,
) -> list[ValidationResult]:
    """Return the result of each validation of a Spark DataFrame, in the order of the validations.

    One aggregation serves all rules but ``unique``, which has an aggregation of its own, and
    functions. ``now`` (default: the clock) and ``materialized_at`` (when the data was materialized;
    the oldest time for several partitions) are aware datetimes, for ``fresh_within``. A validation
    fails with a sentence if the validation cannot be evaluated or its function raises. Raises the
    errors of Spark when its server is gone, and ValueError for datetimes without a time zone.
    """
    facts = FrameFacts(frame, _aware("now", now or datetime.now(UTC)), materialized_at)
    if materialized_at is not None:
        _aware("materialized_at", materialized_at)
    plans = [_plan(validation, facts) for validation in validations]
    measured_values = _measured([plan for plan in plans if plan.measures])
    return [_result(plan, measured_values, facts) for plan in plans]


def not_evaluated(validation: NamedRule, error: Exception) -> ValidationResult:
    """Return the failed result of a validation whose frame cannot be obtained, with the error as
    the reason.

    Raises the error if the Spark server is gone, because such an error says nothing about the data.
    """
    return _failed(validation, _problem(error))


def _aware(name: str, moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{name} needs a time zone: {name}=datetime.now(UTC)")
    return moment


def _plan(validation: NamedRule, facts: FrameFacts) -> _Plan:
    validation_rule = validation.rule
    try:
        if validation_rule.needs_spark:
            facts.check_frame()
        measures = validation_rule.measures(facts)
        return _Plan(validation, validation_rule.source(facts) if measures else None, measures)
    except Exception as error:
        return _Plan(validation, problem=_problem(error))


def _measured(plans: Sequence[_Plan]) -> dict[int, Mapping[str, Any] | Exception]:
    """Return the measured values, or the error of measuring, by the identity of the plan."""
    groups: dict[int, list[_Plan]] = {}
    for plan in plans:
        groups.setdefault(id(plan.source), []).append(plan)
    measured_values: dict[int, Mapping[str, Any] | Exception] = {}
    for group in groups.values():
        try:
            measured_values |= _aggregated(group)
        except Exception as error:
            _raise_if_platform(error)
            # One plan is at fault: measure each plan by itself, to evaluate the other plans.
            measured_values |= (
                {id(group[0]): error} if len(group) == 1 else _measured_one_by_one(group)
            )
    return measured_values


def _measured_one_by_one(group: Sequence[_Plan]) -> dict[int, Mapping[str, Any] | Exception]:
    return {key: value for plan in group for key, value in _measured([plan]).items()}


def _aggregated(group: Sequence[_Plan]) -> dict[int, Mapping[str, Any] | Exception]:
    columns = [
        column.alias(f"{position}_{name}")
        for position, plan in enumerate(group)
        for name, column in (plan.measures or {}).items()
    ]
    (row,) = group[0].source.agg(*columns).collect()
    return {
        id(plan): {name: row[f"{position}_{name}"] for name in plan.measures or {}}
        for position, plan in enumerate(group)
    }


def _result(
    plan: _Plan, measured_values: Mapping[int, Mapping[str, Any] | Exception], facts: FrameFacts
) -> ValidationResult:
    if plan.problem is not None:
        return _failed(plan.validation, plan.problem)
    values = measured_values.get(id(plan), {})
    if isinstance(values, Exception):
        return _failed(plan.validation, _problem(values))
    try:
        evaluation = plan.validation.rule.evaluate(values, facts)
    except Exception as error:
        return _failed(plan.validation, _problem(error))
    return _result_of_evaluation(plan.validation, evaluation, evaluated=True)


def _failed(validation: NamedRule, problem: str) -> ValidationResult:
    return _result_of_evaluation(validation, Evaluation(False, problem), evaluated=False)


def _result_of_evaluation(
    validation: NamedRule, evaluation: Evaluation, *, evaluated: bool
) -> ValidationResult:
    return ValidationResult(
        name=validation.name,
        severity=validation.severity,
        passed=evaluation.passed,
        message=masked_text(evaluation.message),
        observed=evaluation.observed,
        evaluated=evaluated,
    )


def _problem(error: Exception) -> str:
    _raise_if_platform(error)
    if isinstance(error, CannotEvaluateError):
        sentence = f"The validation cannot be evaluated: {error}"
        return sentence if sentence.endswith("?") else f"{sentence}."
    first = (str(error).strip().splitlines() or [""])[0][:_ERROR_LENGTH]
    return f"The validation cannot be evaluated: {type(error).__name__}: {first}"


def _raise_if_platform(error: Exception) -> None:
    """Raise the error if the server is gone: the data is not evaluated, and a retry may succeed."""
    if is_platform_failure(error):
        raise error
