"""What can be wrong with a definition, a key or a selection. All are ValueErrors."""


class DefinitionError(ValueError):
    """A definition says something that cannot be: a bad cron, an unknown zone, end before start."""


class PartitionKeyError(ValueError):
    """A text or value that names no partition of the definition."""


class UnboundedPartitionsError(ValueError):
    """Listing was asked of a definition that has no first or no last partition."""


class SelectionError(ValueError):
    """A selection that cannot be read; the message shows where.

    `position` counts characters from 0 in `text`.
    """

    def __init__(self, reason: str, text: str, position: int) -> None:
        super().__init__(f"{reason}\n  {text}\n  {' ' * position}^")
        self.reason = reason
        self.text = text
        self.position = position
