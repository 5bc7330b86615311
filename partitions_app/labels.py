"""Labels of partition keys for people: `2024-W05` rather than `2024-01-29`.

Only this module makes labels, so that a partition has one name on every page and in the API.
Addresses, folders and selections use the key text, which pages also show.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache

from slicewise import PartitionAtRuntime, PartitionByTime, PartitionDefinition, PartitionKey
from slicewise.keys import ProductKey
from slicewise.texts import listed

# The author of a key class may write any text as a label.
LONGEST_LABEL = 1000
_COMPONENT_SEPARATOR = " | "
# Invisible characters that emoji and some scripts need.
_JOINERS = str.maketrans("", "", "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}")
_FAR = timedelta(days=4000)
_LONGEST_EXAMPLE = 40


def label_of(definition: PartitionDefinition | None, text: str) -> str:
    """Return the label of the partition with a key text; the text where no such partition exists.

    The function reads no rows: a page may have a thousand keys.
    """
    if definition is None:
        return text
    if isinstance(definition, PartitionAtRuntime):  # equal definitions may have other keys
        return _label(definition, text)
    return _remembered_label(definition, text, id(definition))


def _label(definition: PartitionDefinition, text: str) -> str:
    try:
        return label_of_key(definition.parse(text))
    except ValueError:
        return text


@lru_cache(maxsize=16_384)
def _remembered_label(definition: PartitionDefinition, text: str, _object: int) -> str:
    # Cached by the object as well: definitions that differ only in labels of keys are equal.
    return _label(definition, text)


def listed_labels(definition: PartitionDefinition | None, texts: Sequence[str], most: int) -> str:
    """Return the labels of the first keys with commas, and the number of the others."""
    labels = [label_of(definition, text) for text in texts[:most]]
    return listed([*labels, *texts[most:]], most)


def label_of_key(key: PartitionKey) -> str:
    """Return the key's label, or the key's text if a reader would not see the whole label.

    A product key is labelled component by component.
    """
    if isinstance(key, ProductKey):
        return _COMPONENT_SEPARATOR.join(label_of_key(component) for component in key.parts)
    label = key.label
    return label if _is_visible(label) else key.text


def key_named(definition: PartitionDefinition, text: str) -> PartitionKey | None:
    """Return the one partition with this key text or this label; None where there is none.

    Components of a product are looked up one by one, with or without blanks around the bars.
    """
    try:
        return definition.parse(text)
    except ValueError:
        pass
    if len(definition.dimensions) < 2:
        return _key_with_label(definition, text)
    components = text.split(_COMPONENT_SEPARATOR.strip())
    if len(components) != len(definition.dimensions):
        return None
    keys = [
        key_named(dimension.definition, component.strip())
        for dimension, component in zip(definition.dimensions, components, strict=True)
    ]
    component_texts = [key.text for key in keys if key is not None]
    if len(component_texts) < len(components):
        return None
    try:
        return definition.parse(_COMPONENT_SEPARATOR.strip().join(component_texts))
    except ValueError:
        return None


def _key_with_label(definition: PartitionDefinition, text: str) -> PartitionKey | None:
    candidates: Iterable[PartitionKey]
    if isinstance(definition, PartitionByTime):
        try:
            candidates = definition.select(text)[:2]
        except ValueError:
            return None
    else:
        candidates = definition.keys()
    return next((key for key in candidates if label_of_key(key) == text), None)


def selection_label(definition: PartitionDefinition | None, text: str) -> str:
    """Return a selection of one key, or of one range in each dimension, with labels for key texts.

    Any other selection is returned as it was written.
    """
    if definition is None or not text or ";" in text or "," in text:
        return text
    if isinstance(definition, PartitionAtRuntime):  # equal definitions may have other keys
        return _range_label(definition, text)
    return _remembered_selection_label(definition, text, id(definition))


@lru_cache(maxsize=4096)
def _remembered_selection_label(definition: PartitionDefinition, text: str, _object: int) -> str:
    if len(definition.dimensions) < 2 or "=" not in text:
        return _range_label(definition, text)
    definitions = {dimension.name: dimension.definition for dimension in definition.dimensions}
    dimension_terms = [term.partition("=") for term in text.split()]
    return " ".join(
        f"{name}={_range_label(definitions[name], value)}"
        if name in definitions
        else f"{name}{sign}{value}"
        for name, sign, value in dimension_terms
    )


def example_selection(definition: PartitionDefinition, now: datetime) -> str:
    """Return a selection of this definition, as people would type a selection, or an empty text."""
    texts = [_example(dimension.definition, now) for dimension in definition.dimensions]
    if not all(texts) or len(texts) < 2:
        return "".join(texts)
    names = [dimension.name for dimension in definition.dimensions]
    return " ".join(f"{name}={text}" for name, text in zip(names, texts, strict=True))


def _range_label(definition: PartitionDefinition, text: str) -> str:
    return "..".join(label_of(definition, end) for end in text.split(".."))


def _is_visible(label: str) -> bool:
    """Return whether a label has no control character and no outer blank, and is not too long."""
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


def _example_windows(definition: PartitionByTime, now: datetime) -> tuple[str, str]:
    """Return the labels of one window and of the next but one; selections accept labels."""
    start = definition.start or now - _FAR
    # A start may lie near the end of Python's dates.
    until = now if start > now - 2 * _FAR else start + 2 * _FAR
    windows: Sequence[PartitionKey] = definition.windows(start, until)
    if not len(windows):
        return "", ""
    index = 0 if definition.start else max(len(windows) - 3, 0)
    return label_of_key(windows[index]), label_of_key(windows[min(index + 2, len(windows) - 1)])
