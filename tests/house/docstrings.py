"""Measure docstrings: vague words in 1,000, and public functions that do not begin with a verb."""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from tests.house.checkout import Checkout, Module
from tests.house.measure import Measure, share, word_list

Documented: TypeAlias = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

PRONOUNS = frozenset({"it", "they", "them", "those", "its", "their"})
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")


class Word(NamedTuple):
    """A word of a docstring or a help text, in lower case, and the line of the text's owner."""

    text: str
    location: str


def measures(checkout: Checkout) -> list[Measure]:
    """Measure the docstrings of a checkout."""
    words = [word for module in checkout.modules for word in _words(module)]
    return [
        rate("what", "“what” in 1,000 words of docstrings", words, frozenset({"what"})),
        rate(
            "pronouns", "it/they/them/those/its/their in 1,000 words of docstrings", words, PRONOUNS
        ),
        _without_verb(
            "no_verb",
            "% of public functions with a docstring that does not begin with a verb",
            checkout.modules,
        ),
        rate(
            "bench_pronouns",
            "it/they/them/those/its/their/what in 1,000 words of docstrings in bench/",
            [word for module in checkout.bench for word in _words(module)],
            PRONOUNS | {"what"},
        ),
        _without_verb(
            "bench_no_verb",
            "% of public functions in bench/ with a docstring that does not begin with a verb",
            checkout.bench,
        ),
    ]


def rate(limit_name: str, title: str, words: Sequence[Word], counted: frozenset[str]) -> Measure:
    """Measure how many of 1,000 words are counted words."""
    places = [f"{word.location} {word.text}" for word in words if word.text in counted]
    value = share(len(places), len(words), 1000)
    return Measure(limit_name, title, value, places, "Write the noun in its place.")


def _without_verb(limit_name: str, title: str, modules: Sequence[Module]) -> Measure:
    verbs = word_list("verbs")
    firsts = [first for module in modules for first in _first_words(module)]
    places = [f"{word.location} {word.text}" for word in firsts if word.text not in verbs]
    return Measure(
        limit_name,
        title,
        share(len(places), len(firsts), 100),
        places,
        "Begin it with an imperative verb, or add the verb to tests/house/words/verbs.txt.",
    )


def _words(module: Module) -> Iterator[Word]:
    for node in ast.walk(module.tree):
        if isinstance(node, Documented):
            yield from words_of(ast.get_docstring(node) or "", module.location(node))


def words_of(text: str, location: str) -> Iterator[Word]:
    """Split a text into words in lower case, all at the same location."""
    for match in _WORD.findall(text):
        yield Word(match.lower(), location)


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
