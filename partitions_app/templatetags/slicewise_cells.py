"""Cells of the grid as markup, joined by hand: a template is slow for a thousand cells."""

import re
from html import escape

from django import template
from django.utils.safestring import SafeString, mark_safe

from partitions_app.grid.cells import Cell, Row
from partitions_app.grid.share_cells import AggregateCell

register = template.Library()
_ABSENT_HOUR = '<td aria-label="no such hour">'
_WORDS = re.compile(r"\w+")


@register.simple_tag
def cell(one: Cell, base: str = "") -> SafeString:
    """Render one partition as a link to the partition's page."""
    return mark_safe(_cell(one, escape(base)))  # noqa: S308  (all text is escaped)


@register.simple_tag
def row_of_cells(row: Row, base: str = "", suffix: str = "") -> SafeString:
    """Render the cells of a row of a table: empty where there is no partition, and named where
    the clock does not show the hour.

    ``base`` is the address before the addresses of partitions, ``suffix`` the text after addresses
    of other pages of the grid.
    """
    ends = escape(base), escape(suffix)
    return mark_safe(  # noqa: S308  (all text is escaped)
        "".join(
            _ABSENT_HOUR if index in row.absent_hours else _table_cell(table_cell, *ends)
            for index, table_cell in enumerate(row.cells)
        )
    )


def _table_cell(table_cell: Cell | AggregateCell | None, base: str, suffix: str) -> str:
    if table_cell is None:
        return "<td>"
    if isinstance(table_cell, Cell):
        return "<td>" + _cell(table_cell, base)
    return "<td>" + _share_cell(table_cell, suffix)


def _cell(partition_cell: Cell, base: str) -> str:
    # A script shows the name as the tip as well: a second copy would be too much for a page of a
    # thousand cells.
    name = partition_cell.title
    attribute, inside = _inside(partition_cell.inside, name)
    return (
        f'<a class="{partition_cell.look.name}" href="{base}{escape(partition_cell.href)}"'
        f' aria-label="{escape(name)}"{attribute}>{inside}</a>'
    )


def _share_cell(share_cell: AggregateCell, suffix: str) -> str:
    look = share_cell.look
    # In calendars the day stands in the cell, and the bar and the name tell the rest.
    attribute, inside = _inside(share_cell.inside or share_cell.count_text, share_cell.title)
    if look is not None:
        css = look.name
    else:
        css = "mixed" + " alarm" * share_cell.alarming + " has-overdue" * bool(share_cell.overdue)
        css += " has-stale" * bool(share_cell.stale)
        inside += _drawing(share_cell)
    name = escape(share_cell.title)
    href = escape(share_cell.href) + suffix
    return f'<a class="{css}" href="{href}" aria-label="{name}"{attribute}>{inside}</a>'


def _inside(text: str, name: str) -> tuple[str, str]:
    """Return the attribute and the content of a cell that show a text.

    Speech input finds a link by its visible text, so that the text has to be part of the name.
    Other texts repeat a part of the name in short, and the style sheet draws them.
    """
    if not text or name.startswith(text) or text in _WORDS.findall(name):
        return "", escape(text)
    return f' data-text="{escape(text)}"', ""


def _drawing(share_cell: AggregateCell) -> str:
    rectangles = "".join(
        f'<rect class="{share.css}" x="{share.x}" width="{share.width}" height="1"/>'
        for share in share_cell.shares
    )
    return f'<svg viewBox="0 0 100 1" preserveAspectRatio="none">{rectangles}</svg>'
