"""The style sheet of the pages: all that pages use of Tabler's style sheet, and little else."""

import re
from pathlib import Path

import pytest

from tests.styles.style_rules import rules_in_use
from tests.styles.used_tabler import ORIGINAL, USED, used_tabler
from tests.styles.words_in_use import PROJECT, own_scripts

_CLASSES = re.compile(r"\.(-?[a-zA-Z_][\w-]*)")
_ATTRIBUTE = re.compile(r"""class(?:Name)?\s*=\s*["'`]([^"'`]*)""")
_DECLARED_LIST = re.compile(r"""classList\.\w+\(\s*["'`]([^"'`]*)""")
_TEMPLATE_TAG = re.compile(r"{[%{#].*?[%}#]}", re.DOTALL)


def test_the_style_sheet_is_written_from_the_present_pages() -> None:
    assert USED.read_text() == used_tabler(), "Run `make styles`"


def test_each_class_of_a_page_that_tabler_styles_is_styled() -> None:
    pages = [_TEMPLATE_TAG.sub(" ", page.read_text()) for page in _pages()]
    scripts = [script.read_text() for script in own_scripts()]
    lists = [text for page in (*pages, *scripts) for text in _ATTRIBUTE.findall(page)]
    lists += [text for script in scripts for text in _DECLARED_LIST.findall(script)]
    classes = {name for text in lists for name in text.split()}
    styled_by_tabler = classes & set(_CLASSES.findall(ORIGINAL.read_text()))
    assert len(styled_by_tabler) > 60
    assert styled_by_tabler - set(_CLASSES.findall(USED.read_text())) == set()


def test_the_licence_stays_at_the_head() -> None:
    head = USED.read_text()[:400]
    assert "Copyright 2018-2026 The Tabler Authors" in head
    assert "Licensed under MIT" in head


WORDS = {"card", "btn", "active", "data-theme", "dark", "a", "search", "type"}


@pytest.mark.parametrize(
    ("style_sheet", "used"),
    [
        (".card,.modal{color:red}", [".card{color:red}"]),
        (".card .modal{color:red}", []),
        (".btn:not(.modal):hover{color:red}", [".btn:not(.modal):hover{color:red}"]),
        (":is(.modal,.btn) a{color:red}", [":is(.modal,.btn) a{color:red}"]),
        (":where(.modal,.tabs) a{color:red}", []),
        ("[data-theme=dark] .btn{color:red}", ["[data-theme=dark] .btn{color:red}"]),
        ("[data-theme=light] .btn{color:red}", []),
        ("[type=search]::before{color:red}", ["[type=search]::before{color:red}"]),
        ("@media print{.btn{color:red}.tabs{color:red}}", ["@media print{.btn{color:red}}"]),
        ("@media print{.tabs{color:red}}", []),
        (":root{--a:1;--b:2}a{left:var(--a)}", [":root{--a:1}", "a{left:var(--a)}"]),
        (":root{--a:1;--b:var(--a)}", []),
        (":root{--of-page:1}", [":root{--of-page:1}"]),
        ("@keyframes turn{to{left:0}}@keyframes hop{to{left:0}}a{animation:turn 1s}",
         ["@keyframes turn{to{left:0}}", "a{animation:turn 1s}"]),
        ('a{content:"}";color:red!important}', ['a{content:"}";color:red!important}']),
    ],
)  # fmt: skip
def test_rules_stay_for_elements_that_pages_have(style_sheet: str, used: list[str]) -> None:
    assert rules_in_use(style_sheet, WORDS, "p { left: var(--of-page); }") == used


def test_a_style_sheet_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ValueError, match="line 1"):
        rules_in_use(".card{color:red}}.btn{left:0}", WORDS, "")


def _pages() -> list[Path]:
    return [*(PROJECT / "templates").rglob("*.html")]
