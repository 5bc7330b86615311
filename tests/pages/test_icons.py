"""Icons of pages: each name that a template writes is in the file of icons."""

import re
from pathlib import Path

from partitions_app.state_badges import FAILED, OVERDUE, URGENT_FIRST

PROJECT = Path(__file__).resolve().parents[2]


def test_each_icon_that_a_template_names_is_in_the_file_of_icons() -> None:
    icons = (PROJECT / "static/vendor/tabler-icons/icons.svg").read_text()
    pages = [page.read_text() for page in (PROJECT / "templates").rglob("*.html")]
    names = {name for text in pages for name in re.findall(r'{% icon "([^"]+)"', text)}
    assert len(names) > 20
    assert {name for name in names if f'id="{name}"' not in icons} == set()


def test_each_state_that_needs_attention_has_an_icon_of_its_own() -> None:
    icons = (PROJECT / "static/vendor/tabler-icons/icons.svg").read_text()
    assert {look.icon for look in URGENT_FIRST if f'id="{look.icon}"' not in icons} == set()
    assert len({look.icon for look in URGENT_FIRST}) == len(URGENT_FIRST)
    assert URGENT_FIRST[:2] == (FAILED, OVERDUE)
