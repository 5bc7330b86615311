"""Cells of the grid as markup, joined by hand: a template is slow for a thousand cells."""

from collections.abc import Sequence
from html import escape

from django import template
from django.utils.safestring import SafeString, mark_safe

from partitions_app.grid.cells import AggregateCell, Cell

register = template.Library()


@register.simple_tag
def cell(one: Cell, base: str = "") -> SafeString:
    """Render one partition as a link to the partition's page."""
    return mark_safe(_cell(one, escape(base)))  # noqa: S308  (all text is escaped)


@register.simple_tag
def row_of_cells(cells: Sequence[Cell | AggregateCell | None]) -> SafeString:
    """Render the cells of a row of a table, empty where there is no partition."""
    return mark_safe("".join(map(_table_cell, cells)))  # noqa: S308  (all text is escaped)


def _table_cell(table_cell: Cell | AggregateCell | None) -> str:
    if table_cell is None:
        return "<td>"
    return "<td>" + (
        _cell(table_cell, "") if isinstance(table_cell, Cell) else _share_cell(table_cell)
    )


def _cell(partition_cell: Cell, base: str) -> str:
    # A script shows the name as the tip as well: a second copy would be too much for a page of a
    # thousand cells.
    return (
        f'<a class="{partition_cell.look.name}" href="{base}{escape(partition_cell.href)}"'
        f' aria-label="{escape(partition_cell.title)}">{escape(partition_cell.inside)}</a>'
    )


def _share_cell(share_cell: AggregateCell) -> str:
    look = share_cell.look
    if look is not None:
        css, inside = look.name, escape(share_cell.inside)
    else:
        css = "mixed alarm" if share_cell.alarming else "mixed"
        inside = _drawing(share_cell)
    name = escape(share_cell.title)
    return f'<a class="{css}" href="{escape(share_cell.href)}" aria-label="{name}">{inside}</a>'


def _drawing(share_cell: AggregateCell) -> str:
    rectangles = "".join(
        f'<rect class="{share.css}" x="{share.x}" width="{share.width}" height="1"/>'
        for share in share_cell.shares
    )
    return f'<svg viewBox="0 0 100 1" preserveAspectRatio="none">{rectangles}</svg>'
