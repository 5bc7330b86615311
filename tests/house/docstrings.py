"""Measure docstrings: vague words in 1,000, and public functions that do not begin with a verb."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from tests.house.checkout import Checkout, Module
from tests.house.measure import Measure, share, word_list

Documented: TypeAlias = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

PRONOUNS = frozenset({"it", "they", "them", "those", "its", "their"})
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")


class Word(NamedTuple):
    """A word of a docstring, in lower case, and the line of its class or function."""

    text: str
    location: str


def measures(checkout: Checkout) -> list[Measure]:
    """Measure the docstrings of a checkout."""
    words = [word for module in checkout.modules for word in _words(module)]
    return [
        _rate("what", "“what” in 1,000 words of docstrings", words, frozenset({"what"})),
        _rate(
            "pronouns", "it/they/them/those/its/their in 1,000 words of docstrings", words, PRONOUNS
        ),
        _without_verb(checkout),
    ]


def _rate(limit_name: str, title: str, words: list[Word], counted: frozenset[str]) -> Measure:
    places = [f"{word.location} {word.text}" for word in words if word.text in counted]
    value = share(len(places), len(words), 1000)
    return Measure(limit_name, title, value, places, "Write the noun in its place.")


def _without_verb(checkout: Checkout) -> Measure:
    verbs = word_list("verbs")
    firsts = [first for module in checkout.modules for first in _first_words(module)]
    places = [f"{word.location} {word.text}" for word in firsts if word.text not in verbs]
    return Measure(
        "no_verb",
        "% of public functions with a docstring that does not begin with a verb",
        share(len(places), len(firsts), 100),
        places,
        "Begin it with an imperative verb, or add the verb to tests/house/words/verbs.txt.",
    )


def _words(module: Module) -> Iterator[Word]:
    for node in ast.walk(module.tree):
        if isinstance(node, Documented):
            for match in _WORD.findall(ast.get_docstring(node) or ""):
                yield Word(match.lower(), module.location(node))


def _first_words(module: Module) -> Iterator[Word]:
    for function in public_functions(module.tree):
        first = _WORD.search(ast.get_docstring(function) or "")
        if first is not None:
            yield Word(first[0].lower(), module.location(function))


def public_functions(node: ast.Module | ast.ClassDef) -> Iterator[Function]:
    """Find the public functions of a module and the public methods of its public classes.

    Properties are left out, for a property reads as an attribute: its docstring is a noun. So are
    functions inside functions, which have no other caller.
    """
    for child in node.body:
        if isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
            yield from public_functions(child)
        elif isinstance(child, Function) and _is_public(child):
            yield child


def _is_public(function: Function) -> bool:
    if function.name.startswith("_"):
        return False
    names = {ast.unparse(decorator).rpartition(".")[2] for decorator in function.decorator_list}
    return names.isdisjoint({"property", "cached_property", "classproperty"})
