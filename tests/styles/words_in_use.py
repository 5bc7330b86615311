"""Words that may be classes, elements or attributes of pages, read from the sources of the pages.

A word too many costs some bytes, a missing word a style: every word within a tag or a string
counts, whether the word is a class or not.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import django

PROJECT = Path(__file__).resolve().parents[2]
PACKAGES = ("accounts_app", "assets_app", "backfills_app", "partitions_app", "slicewise_server")

# The fields of Django's forms.
_DJANGO_FORMS = Path(django.__file__).parent / "forms"
_WORD = re.compile(r"[\w-]+")
_COMMENT = re.compile(r"{#.*?#}")
_TEMPLATE_TAG = re.compile(r"{([%{])(.*?)[%}]}", re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_ANGLE = re.compile(r"[<>]")
_SCRIPT_STRING = re.compile(r""""[^"\n]*"|'[^'\n]*'|`[^`]*`""")


def words_in_use() -> set[str]:
    """Return the words of all templates, of own scripts, and of strings of the server."""
    return {word for text in _texts() for word in _WORD.findall(text)}


def own_scripts() -> list[Path]:
    """Return the scripts that are no files of a library."""
    static = PROJECT / "static"
    return [path for path in static.rglob("*.js") if static / "vendor" not in path.parents]


def _texts() -> Iterator[str]:
    for folder in (PROJECT / "templates", _DJANGO_FORMS / "templates"):
        for page in folder.rglob("*.html"):
            yield from _template_texts(page.read_text())
    for script in own_scripts():
        yield from _SCRIPT_STRING.findall(script.read_text())
    for module in (*_modules(), _DJANGO_FORMS / "widgets.py"):
        yield from _python_strings(module.read_text())


def _modules() -> Iterator[Path]:
    for package in PACKAGES:
        modules = (PROJECT / package).rglob("*.py")
        yield from (module for module in modules if "migrations" not in module.parts)


def _template_texts(template: str) -> Iterator[str]:
    """Return the tags of Django and of HTML. Text between tags has no classes."""
    template = _COMMENT.sub("", template)
    yield from (tag[2] for tag in _TEMPLATE_TAG.finditer(template))
    # A comparison within a tag of Django is no end of a tag of HTML.
    html = _TEMPLATE_TAG.sub(lambda tag: f" {_ANGLE.sub(' ', tag[2])} ", template)
    yield from _TAG.findall(html)


def _python_strings(source: str) -> Iterator[str]:
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    for constant in constants:
        if isinstance(constant.value, str) and id(constant) not in docstrings:
            yield constant.value
