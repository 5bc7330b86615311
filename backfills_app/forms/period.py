"""The period of the form: dates, segments or a selection, with errors at the wrong field."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django import forms

from backfills_app.services import named_window
from slicewise import Dimension, PartitionDefinition
from slicewise_server.web.request_errors import FieldErrors, InvalidRequest

SEGMENT = "segment-"
# A dimension with more segments is a text field with suggestions.
MOST_SEGMENT_BOXES = 20


@dataclass(frozen=True, slots=True)
class TypedPeriod:
    """The typed texts; ``segments`` by the name of the dimension, empty for all segments."""

    start: str
    end: str
    selection: str
    segments: Mapping[str, str]


class SegmentsField(forms.Field):
    """Segments as boxes, or as one text with commas and patterns."""

    def to_python(self, value: object) -> str:
        """Return the segments with commas between them."""
        texts = [value] if isinstance(value, str) else list(value) if value else []  # type: ignore[call-overload]
        return ",".join(text.strip() for text in map(str, texts) if text.strip())


def request_fields(definition: PartitionDefinition | None, typed: TypedPeriod) -> dict[str, str]:
    """Return the fields of the request that name the partitions.

    Raises InvalidRequest on the field that is wrong: ``start``, ``end``, ``selection``, or the
    field of a dimension.
    """
    narrowed = {name: text for name, text in typed.segments.items() if text}
    if typed.selection and (typed.start or typed.end):
        raise InvalidRequest({"selection": "Use From and To, or a partition selection, not both."})
    if typed.selection and narrowed:
        raise InvalidRequest(
            {
                "selection": "Write the segments into the partition selection, or clear the"
                " segment fields."
            }
        )
    dates = {"start": typed.start, "end": typed.end, "selection": typed.selection}
    if not narrowed or definition is None or not (typed.start and typed.end):
        return dates
    time = definition.time_dimension
    assert time is not None  # noqa: S101  (only assets with time have fields for segments)
    errors = FieldErrors()
    for field, is_first in (("start", True), ("end", False)):
        with errors:
            named_window(time, field, dates[field], first=is_first)
    segment_texts = {}
    for dimension in definition.segment_dimensions:
        if dimension.name in narrowed:
            with errors:
                segment_texts[dimension.name] = _checked(dimension, narrowed[dimension.name])
    if errors.messages:
        raise InvalidRequest(errors.messages)
    axis = definition.space.time_name
    terms = [f"{axis}={typed.start}..{typed.end}"]
    terms += [f"{name}={text}" for name, text in segment_texts.items()]
    return {"selection": " ".join(terms)}


def _checked(dimension: Dimension, text: str) -> str:
    """Return the segments as the definition writes them; upper and lower case are forgiven."""
    items = [item.strip() for item in text.split(",") if item.strip()]
    try:
        keys: Iterable[object] = dimension.definition.keys()
        by_folded_text: dict[str, list[str]] = {}
        for key in keys:
            key_text = key.text  # type: ignore[attr-defined]
            by_folded_text.setdefault(key_text.casefold(), []).append(key_text)
        spelled = [_spelled(item, by_folded_text) for item in items]
        dimension.definition.select(",".join(spelled))
    except ValueError as error:
        raise InvalidRequest({SEGMENT + dimension.name: str(error)}) from error
    return ",".join(spelled)


def _spelled(item: str, by_folded_text: Mapping[str, list[str]]) -> str:
    same = by_folded_text.get(item.casefold(), [])
    return same[0] if len(same) == 1 and item not in same else item
