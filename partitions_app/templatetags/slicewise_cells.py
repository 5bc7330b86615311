"""Cells of the grid as markup, by hand: a page has a thousand, and a template is slow at that."""

from collections.abc import Sequence
from html import escape

from django import template
from django.utils.safestring import SafeString, mark_safe

from partitions_app.grid_cells import Cell, ShareCell

register = template.Library()


@register.simple_tag
def cell(one: Cell, base: str = "") -> SafeString:
    """Render one partition as a link to its page."""
    return mark_safe(_cell(one, escape(base)))  # noqa: S308  (every piece is escaped)


@register.simple_tag
def row_of_cells(cells: Sequence[Cell | ShareCell | None]) -> SafeString:
    """Render the cells of a row of a table, empty where there is no partition."""
    return mark_safe("".join(map(_table_cell, cells)))  # noqa: S308  (every piece is escaped)


def _table_cell(one: Cell | ShareCell | None) -> str:
    if one is None:
        return "<td>"
    return "<td>" + (_cell(one, "") if isinstance(one, Cell) else _share_cell(one))


def _cell(one: Cell, base: str) -> str:
    # The name is the tip as well, by a script: twice the same would be too much for a page of a
    # thousand cells.
    return (
        f'<a class="{one.look.name}" href="{base}{escape(one.href)}"'
        f' aria-label="{escape(one.title)}">{escape(one.inside)}</a>'
    )


def _share_cell(one: ShareCell) -> str:
    look = one.look
    if look is not None:
        css, inside = look.name, escape(one.inside)
    else:
        css = "mixed alarm" if one.alarming else "mixed"
        inside = _drawing(one)
    name = escape(one.title)
    return f'<a class="{css}" href="{escape(one.href)}" aria-label="{name}">{inside}</a>'


def _drawing(one: ShareCell) -> str:
    pieces = "".join(
        f'<rect class="{share.css}" x="{share.x}" width="{share.width}" height="1"/>'
        for share in one.shares
    )
    return f'<svg viewBox="0 0 100 1" preserveAspectRatio="none">{pieces}</svg>'
