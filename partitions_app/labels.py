"""What people are shown of a partition's key: `2024-W05` rather than `2024-01-29`.

One home, so that a partition has one name on every page and in the API. Addresses, folders and
selections go by the key text, which pages keep within reach.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache

from slicewise import PartitionAtRuntime, PartitionByTime, PartitionDefinition, PartitionKey
from slicewise.keys import ProductKey

# Of user key classes, a label is whatever their author wrote.
LONGEST_LABEL = 1000
_BETWEEN_PARTS = " | "
# Invisible, but emoji and some scripts are spelled with them.
_JOINERS = str.maketrans("", "", "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}")
_FAR = timedelta(days=4000)
_LONGEST_EXAMPLE = 40


def label_of(definition: PartitionDefinition | None, text: str) -> str:
    """Return the label of the partition of a key text; the text where no such partition exists.

    The function reads nothing: a page may ask for each of its thousand keys.
    """
    if definition is None:
        return text
    if isinstance(definition, PartitionAtRuntime):  # equal ones may know other keys
        return _label(definition, text)
    return _remembered_label(definition, text, id(definition))


def _label(definition: PartitionDefinition, text: str) -> str:
    try:
        return label_of_key(definition.parse(text))
    except ValueError:
        return text


@lru_cache(maxsize=16_384)
def _remembered_label(definition: PartitionDefinition, text: str, _object: int) -> str:
    # By the object as well: definitions with other labels of their keys are equal.
    return _label(definition, text)


def label_of_key(key: PartitionKey) -> str:
    """Return the key's own label, or its text, by component, where a reader would miss a part."""
    if isinstance(key, ProductKey):
        return _BETWEEN_PARTS.join(label_of_key(part) for part in key.parts)
    label = key.label
    return label if _can_be_seen(label) else key.text


def selection_label(definition: PartitionDefinition | None, text: str) -> str:
    """Return a selection of one key, or of one range in each dimension, with labels for key texts.

    Any other selection is returned as it was written.
    """
    if definition is None or not text or ";" in text or "," in text:
        return text
    if isinstance(definition, PartitionAtRuntime):  # equal ones may know other keys
        return _range_label(definition, text)
    return _remembered_selection_label(definition, text, id(definition))


@lru_cache(maxsize=4096)
def _remembered_selection_label(definition: PartitionDefinition, text: str, _object: int) -> str:
    if len(definition.dimensions) < 2 or "=" not in text:
        return _range_label(definition, text)
    rules = {dimension.name: dimension.definition for dimension in definition.dimensions}
    named = [part.partition("=") for part in text.split()]
    return " ".join(
        f"{name}={_range_label(rules[name], value)}" if name in rules else f"{name}{sign}{value}"
        for name, sign, value in named
    )


def example_selection(definition: PartitionDefinition, now: datetime) -> str:
    """Return a selection that this definition has, as people would type it, or an empty text."""
    texts = [_example(dimension.definition, now) for dimension in definition.dimensions]
    if not all(texts) or len(texts) < 2:
        return "".join(texts)
    names = [dimension.name for dimension in definition.dimensions]
    return " ".join(f"{name}={text}" for name, text in zip(names, texts, strict=True))


def _range_label(definition: PartitionDefinition, text: str) -> str:
    return "..".join(label_of(definition, end) for end in text.split(".."))


def _can_be_seen(label: str) -> bool:
    """Whether a reader sees all of it: no control character, no blank at an end, not too long."""
    return (
        0 < len(label) <= LONGEST_LABEL
        and label.translate(_JOINERS).isprintable()
        and label == " ".join(label.split(" ")).strip()
    )


def _example(definition: PartitionDefinition, now: datetime) -> str:
    if isinstance(definition, PartitionByTime):
        first, last = _example_windows(definition, now)
        return f"{first}..{last}" if first != last else first
    texts = [key.text for key in definition.keys()[:2]]
    joined = ",".join(texts)
    return joined if len(joined) <= _LONGEST_EXAMPLE else "*"


def _example_windows(rule: PartitionByTime, now: datetime) -> tuple[str, str]:
    """Labels, which selections take for windows, of one window and of the one after the next."""
    start = rule.start or now - _FAR
    windows: Sequence[PartitionKey] = rule.windows(start, min(start + 2 * _FAR, now))
    if not len(windows):
        return "", ""
    at = 0 if rule.start else max(len(windows) - 3, 0)
    return label_of_key(windows[at]), label_of_key(windows[min(at + 2, len(windows) - 1)])
