"""Validations of assets, as definition files declare them ("Asset Validations")."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, get_args, overload

from slicewise.errors import DefinitionError
from slicewise.validations.checking import check_all
from slicewise.validations.functions import Function, FunctionRule, check_function
from slicewise.validations.result import Severity, ValidationResult
from slicewise.validations.rule import Frame, Rule, column_name, column_names, names_text
from slicewise.validations.shape import FreshWithin, HasColumns, HasTypes, RowCount
from slicewise.validations.types import type_text
from slicewise.validations.values import AcceptedValues, Matches, NotNull, Unique, family

__all__ = ["AssetValidation", "validation"]

# Syntax that regular expressions of Java have and regular expressions of Python have not.
_ONLY_JAVA = re.compile(r"\\[pP](\{\w+(=\w+)?\}|\w)|\\[hHRXzZGe]")
_GROUP = re.compile(r"\(\?<(?![=!])")


@dataclass(frozen=True)
class AssetValidation:
    """A condition on the data of an asset; created by one of the methods below.

    Columns are names, or an asset's columns (``raw_sales.sales``). ``severity="error"`` (default)
    blocks the run, ``"warn"`` only reports. All methods raise DefinitionError for invalid
    arguments.
    """

    rule: Rule
    severity: Severity = "error"
    name: str = ""
    """The name of the validation; by default the name of the rule: ``"not_null(sales)"``."""
    assets: frozenset[str] = field(default=frozenset(), compare=False)
    """The asset of the columns, if columns of an asset were given; else empty."""

    def __post_init__(self) -> None:
        if self.severity not in get_args(Severity):
            raise DefinitionError(f'severity is "error" or "warn", not {self.severity!r}')
        if not isinstance(self.name, str) or (self.name and not self.name.strip()):
            raise DefinitionError(f"the name of a validation is a text, not {self.name!r}")
        if len(self.assets) > 1:
            raise DefinitionError(
                f"a validation is about one asset, not about {names_text(sorted(self.assets))}"
            )
        if not self.name:
            object.__setattr__(self, "name", self.rule.name())

    @classmethod
    def has_columns(
        cls, *columns: object, severity: Severity = "error", name: str = ""
    ) -> "AssetValidation":
        """Expect the data to have these columns; ``"address.city"`` is a field of a struct."""
        columns_rule = HasColumns(column_names("has_columns", columns))
        return cls(columns_rule, severity, name, _assets(columns))

    @classmethod
    def has_types(
        cls, types: Mapping[Any, object], *, severity: Severity = "error", name: str = ""
    ) -> "AssetValidation":
        """Expect these types of columns: ``{"sales": "decimal(10,2)", "tags": "array<string>"}``.

        Types are texts in Spark's DDL, or DataTypes.
        """
        if not isinstance(types, Mapping):
            raise DefinitionError(f"has_types takes columns and types as a dict, not {types!r}")
        names = column_names("has_types", tuple(types))
        pairs = zip(names, map(type_text, types.values()), strict=True)
        return cls(HasTypes(tuple(pairs)), severity, name, _assets(types))

    @classmethod
    def not_null(
        cls, *columns: object, severity: Severity = "error", name: str = ""
    ) -> "AssetValidation":
        """Expect no null in any of these columns. NaN is not null."""
        null_rule = NotNull(column_names("not_null", columns))
        return cls(null_rule, severity, name, _assets(columns))

    @classmethod
    def unique(
        cls, *columns: object, severity: Severity = "error", name: str = ""
    ) -> "AssetValidation":
        """Expect no two rows with the same values in these columns, taken together.

        As in SQL, rows with a null in one of the columns are not compared.
        """
        unique_rule = Unique(column_names("unique", columns))
        return cls(unique_rule, severity, name, _assets(columns))

    @classmethod
    def accepted_values(
        cls, column: object, values: Iterable[Any], *, severity: Severity = "error", name: str = ""
    ) -> "AssetValidation":
        """Expect the column to hold only these values, or null.

        All values are texts, or all numbers, truth values, dates or datetimes.
        """
        values_rule = AcceptedValues(column_name("accepted_values", column), _values(values))
        return cls(values_rule, severity, name, _assets([column]))

    @classmethod
    def matches(
        cls, column: object, regex: str, *, severity: Severity = "error", name: str = ""
    ) -> "AssetValidation":
        r"""Expect each text of the column to match as a whole, or to be null: ``r"\+?[0-9 ]+"``.

        The regular expression is a Java regular expression, because Spark evaluates it.
        """
        regex_rule = Matches(column_name("matches", column), _regex(regex))
        return cls(regex_rule, severity, name, _assets([column]))

    @classmethod
    def row_count(
        cls,
        *,
        min: int | None = None,
        max: int | None = None,
        severity: Severity = "error",
        name: str = "",
    ) -> "AssetValidation":
        """Expect at least ``min`` and at most ``max`` rows; one of the two may be left out."""
        for side, bound in (("min", min), ("max", max)):
            is_count = isinstance(bound, int) and not isinstance(bound, bool) and bound >= 0
            if bound is not None and not is_count:
                raise DefinitionError(f"{side} is a number of rows from 0, not {bound!r}")
        if min is None and max is None:
            raise DefinitionError("row_count needs min= or max=")
        if min is not None and max is not None and min > max:
            raise DefinitionError(f"min={min} is more than max={max}")
        return cls(RowCount(min, max), severity, name)

    @classmethod
    def fresh_within(
        cls,
        span: timedelta,
        *,
        column: object = None,
        severity: Severity = "error",
        name: str = "",
    ) -> "AssetValidation":
        """Expect the data to be at most this old.

        With ``column``, the newest timestamp or date of the column is compared with the clock (a
        date counts as its midnight in UTC; a timestamp without zone is read in UTC, too); else the
        time at which the data was materialized. Data without any value is not fresh; a value in the
        future is fresh.
        """
        if not isinstance(span, timedelta) or span <= timedelta(0):
            raise DefinitionError(f"fresh_within takes a timedelta above 0, not {span!r}")
        if column is None:
            return cls(FreshWithin(span, None), severity, name)
        freshness_rule = FreshWithin(span, column_name("fresh_within", column))
        return cls(freshness_rule, severity, name, _assets([column]))

    @property
    def description(self) -> str:
        """The condition, as a sentence or the docstring of a function."""
        return self.rule.description()

    def to_json(self) -> dict[str, Any]:
        """Return kind, name, severity, description and arguments, as the loader reports them."""
        return {
            "kind": self.rule.kind,
            "name": self.name,
            "severity": self.severity,
            "description": self.description,
            **self.rule.to_json(),
        }

    def check(
        self, frame: Frame, *, now: datetime | None = None, materialized_at: datetime | None = None
    ) -> ValidationResult:
        """Return the result for a Spark DataFrame; `check_all` evaluates several at once."""
        return check_all(frame, [self], now=now, materialized_at=materialized_at)[0]


@overload
def validation(function: Function, /) -> AssetValidation: ...
@overload
def validation(
    *, severity: Severity = "error", name: str = ""
) -> Callable[[Function], AssetValidation]: ...
def validation(
    function: Function | None = None, /, *, severity: Severity = "error", name: str = ""
) -> AssetValidation | Callable[[Function], AssetValidation]:
    """Create a validation from a function of a DataFrame.

    The function returns True or None for valid data; for invalid data the function returns False or
    a text with the reason, or raises AssertionError. The docstring of the function is the
    description.
    """

    def decorate(function: Function) -> AssetValidation:
        check_function(function)
        return AssetValidation(FunctionRule(function), severity, name)

    return decorate if function is None else decorate(function)


def _assets(columns: Iterable[object]) -> frozenset[str]:
    owners = (getattr(c, "asset", None) for c in columns if not isinstance(c, str))
    return frozenset(str(getattr(owner, "name", owner)) for owner in owners if owner is not None)


def _values(values: Iterable[Any]) -> tuple[Any, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise DefinitionError(f"accepted_values takes a list of values, not {values!r}")
    accepted = tuple(values)
    if not accepted:
        raise DefinitionError("accepted_values needs at least one value")
    families = dict.fromkeys(family(value) for value in accepted)
    if None in accepted:
        raise DefinitionError("null is always accepted; leave null out, or add not_null")
    if None in families or any(isinstance(v, float) and not math.isfinite(v) for v in accepted):
        raise DefinitionError(
            f"accepted_values takes texts, finite numbers, truth values, dates or datetimes,"
            f" not {names_text(accepted)}"
        )
    if len(families) > 1:
        raise DefinitionError(f"the values are of one kind, not {' and '.join(map(str, families))}")
    return accepted


def _regex(regex: object) -> str:
    if not isinstance(regex, str):
        raise DefinitionError(f"a regular expression is a text, not {regex!r}")
    if "(?P" in regex:
        raise DefinitionError(f"{regex!r}: Java names a group (?<name>...), without the P")
    try:
        re.compile(_GROUP.sub("(?P<", _ONLY_JAVA.sub("a", regex)))
    except re.error as error:
        if "look-behind" in str(error):
            return regex  # look-behind has one fixed length in Python, but not in Java
        raise DefinitionError(f"{regex!r} is no regular expression: {error}") from None
    return regex
