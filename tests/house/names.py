"""Measure names: local names that say nothing, and module names that occur twice in an app."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from tests.house.checkout import Checkout, Module
from tests.house.docstrings import Function
from tests.house.measure import Measure, share, word_list

# Folders that have one module for each idea, and so the names of other folders again.
LAYERS = {
    *("admin", "api", "commands", "forms", "management", "models", "queries", "receivers"),
    *("apps", "serializers", "services", "signals", "tasks", "templatetags", "urls", "views"),
}


class LocalName(NamedTuple):
    """A name that a function binds, as an argument or a variable, and the line of the function."""

    text: str
    location: str


def measures(checkout: Checkout) -> list[Measure]:
    """Measure the names of a checkout."""
    names = [name for module in checkout.modules for name in _local_names(module)]
    advice = "Name the kind of thing: `partition_count`, `ended_run`."
    return [
        _share(names, "pronoun_names", "% of local names that are pronouns or participles", advice),
        _share(names, "vague_names", "% of local names with many meanings here", advice),
        _repeated(checkout),
    ]


def _share(names: list[LocalName], limit_name: str, title: str, advice: str) -> Measure:
    denied = word_list(limit_name)
    places = [f"{name.location} {name.text}" for name in names if name.text in denied]
    return Measure(limit_name, title, share(len(places), len(names), 100), places, advice)


def _repeated(checkout: Checkout) -> Measure:
    paths: dict[tuple[str, str], list[str]] = defaultdict(list)
    for module in checkout.modules:
        inner = module.path.with_suffix("").parts[1:]
        # Python gives `__main__` its name.
        if not module.is_package and inner[-1] != "__main__" and LAYERS.isdisjoint(inner):
            paths[module.app, inner[-1]].append(str(module.path))
    places = [" ".join(module_paths) for module_paths in paths.values() if len(module_paths) > 1]
    return Measure(
        "repeated_modules",
        "module names that occur twice in an app, layers aside",
        len(places),
        places,
        "Give one of the modules a name of its own.",
    )


def _local_names(module: Module) -> Iterator[LocalName]:
    for node in ast.walk(module.tree):
        if isinstance(node, Function):
            for name in sorted(_bound(node)):
                yield LocalName(name.strip("_"), module.location(node))


def _bound(function: Function) -> set[str]:
    """Return the names that a function binds itself, without functions and classes inside it."""
    bound: set[str] = set()
    nodes: list[ast.AST] = [function.args, *function.body]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        nodes.extend(ast.iter_child_nodes(node))
    return bound - {"self", "cls", "_"}
