"""Icons of pages: each name that a template writes is in the file of icons."""

import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def test_each_icon_that_a_template_names_is_in_the_file_of_icons() -> None:
    icons = (PROJECT / "static/vendor/tabler-icons/icons.svg").read_text()
    pages = [page.read_text() for page in (PROJECT / "templates").rglob("*.html")]
    names = {name for text in pages for name in re.findall(r'{% icon "([^"]+)"', text)}
    assert len(names) > 20
    assert {name for name in names if f'id="{name}"' not in icons} == set()
