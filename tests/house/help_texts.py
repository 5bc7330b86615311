"""Measure help texts: of fields of the API, and of options of the command line."""

import ast
from collections.abc import Iterator

from tests.house.checkout import Checkout, Module
from tests.house.docstrings import PRONOUNS, Word, rate, words_of
from tests.house.measure import Measure

# Arguments with a help text: of serializers and forms, argparse, and the API's schema.
KEYWORDS = frozenset({"help_text", "help", "description", "summary"})
# The position of the help text in `add_verb(verbs, name, act, about)`.
_VERB_HELP = 3


def measures(checkout: Checkout) -> list[Measure]:
    """Measure the help texts of a checkout, with the help texts of bench/."""
    modules = [*checkout.modules, *checkout.bench]
    words = [word for module in modules for word in _words(module)]
    return [
        rate(
            "help_pronouns",
            "it/they/them/those/its/their/what in 1,000 words of help texts",
            words,
            PRONOUNS | {"what"},
        )
    ]


def _words(module: Module) -> Iterator[Word]:
    for node in ast.walk(module.tree):
        for expression in _help_expressions(node):
            for child in ast.walk(expression):
                if isinstance(child, ast.Constant) and isinstance(child.value, str):
                    yield from words_of(child.value, module.location(child))


def _help_expressions(node: ast.AST) -> Iterator[ast.expr]:
    """Find the expressions of help texts that a node holds directly."""
    if isinstance(node, ast.keyword) and node.arg in KEYWORDS:
        yield node.value
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in KEYWORDS:
                yield value
    elif isinstance(node, ast.ClassDef):
        yield from (
            statement.value
            for statement in node.body
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "help"
        )
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".add_verb"):
        yield from node.args[_VERB_HELP : _VERB_HELP + 1]
