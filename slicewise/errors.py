"""Errors of definitions, keys and selections. All are ValueErrors."""


class DefinitionError(ValueError):
    """A declaration is impossible: a bad cron, an unknown zone, end before start."""


class PartitionError(ValueError):
    """A run has several partitions, or none of a kind, where exactly one is asked for."""


class PartitionKeyError(ValueError):
    """A text or value names no partition of the definition."""


class UnboundedPartitionsError(ValueError):
    """A definition without a first or a last partition cannot be listed."""


class SelectionError(ValueError):
    """A selection cannot be read; the message shows where.

    `position` counts characters from 0 in `text`.
    """

    def __init__(self, reason: str, text: str, position: int) -> None:
        super().__init__(f"{reason}\n  {text}\n  {' ' * position}^")
        self.reason = reason
        self.text = text
        self.position = position
