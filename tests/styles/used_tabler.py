"""The part of Tabler's style sheet that pages use."""

import re

from tests.styles.style_rules import rules_in_use
from tests.styles.words_in_use import PROJECT, own_scripts, words_in_use

ORIGINAL = PROJECT / "static/vendor/tabler/tabler.min.css"
USED = PROJECT / "static/vendor/tabler/tabler.used.css"

_LICENCE = re.compile(r"/\*!.*?\*/", re.DOTALL)
_NOTE = "/* The rules of tabler.min.css that pages use, written by `make styles`. */"


def used_tabler() -> str:
    """Return the style sheet, with the licence of the original, and a rule a line."""
    original = ORIGINAL.read_text()
    licence = _LICENCE.search(original)
    assert licence, "The style sheet does not begin with its licence"
    rules = rules_in_use(original, words_in_use(), _own_styles())
    return "\n".join(['@charset "UTF-8";', licence[0], _NOTE, *rules, ""])


def _own_styles() -> str:
    static = PROJECT / "static"
    sheets = [path for path in static.rglob("*.css") if static / "vendor" not in path.parents]
    return "\n".join(path.read_text() for path in [*sheets, *own_scripts()])
