"""Measure imports: modules in circles, imports inside functions or for type checkers alone, and
imports of test modules.
"""

import ast
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args

from tests.house.checkout import Checkout, Module
from tests.house.circles import circles
from tests.house.measure import Measure

Kind: TypeAlias = Literal["module", "function", "typing"]
LATE_IMPORTS = Path(__file__).parent / "late_imports.toml"
# Rooms of programs: servers start these programs, and name their modules one by one.
_PROGRAMS = ("runner", "process", "data_helper")
_ADVICE = "Move the shared name below both modules, so that imports go one way."


class Import(NamedTuple):
    """An import of one module by another one."""

    importer: str
    imported: str
    kind: Kind
    location: str


def measures(checkout: Checkout) -> list[Measure]:
    """Measure the imports of a checkout."""
    imports = list(_imports(checkout.modules))
    reasons = late_import_reasons("modules")
    packages = late_import_reasons("packages")
    in_functions = [line for line in imports if line.kind == "function"]
    without_reason = [line for line in in_functions if _reason(line, reasons) is None]
    return [
        _largest_circle("circle", "at import time", imports, "module"),
        _largest_circle("circle_functions", "with functions", imports, "module", "function"),
        _largest_circle(
            "circle_typing", "with functions and TYPE_CHECKING", imports, *get_args(Kind)
        ),
        _listed(
            "function_imports",
            "imports of own modules inside functions, without a reason in late_imports.toml",
            without_reason,
        ),
        _listed(
            "late_imports",
            "imports of own modules inside functions, with a reason there",
            [line for line in in_functions if line not in without_reason],
        ),
        _listed(
            "package_imports",
            "imports of other packages inside functions, without a reason there",
            [line for line in late_packages(checkout) if line.imported not in packages],
        ),
        _listed(
            "typing_imports",
            "imports of own modules under TYPE_CHECKING",
            [line for line in imports if line.kind == "typing"],
        ),
        _past_rooms(checkout.modules),
        _of_test_modules(checkout),
    ]


def late_import_reasons(table: Literal["modules", "packages"]) -> dict[str, str]:
    """Read why imports stand inside functions, by pattern of modules or by imported package."""
    reasons: dict[str, str] = tomllib.loads(LATE_IMPORTS.read_text())[table]
    return reasons


def patterns_in_use(checkout: Checkout) -> set[str]:
    """Return the patterns of `late_imports.toml` of which a module imports inside a function."""
    reasons = late_import_reasons("modules")
    late = (line for line in _imports(checkout.modules) if line.kind == "function")
    return {pattern for line in late if (pattern := _reason(line, reasons)) is not None}


def late_packages(checkout: Checkout) -> list[Import]:
    """Return the imports inside functions of packages that are not of the product."""
    return [
        Import(module.name, package, kind, module.location(node))
        for module in checkout.modules
        for node, kind in _statements(module.tree, "module")
        if kind == "function"
        for package in sorted({name.partition(".")[0] for name in _imported_names(module, node)})
        if package not in checkout.packages
    ]


def _reason(line: Import, reasons: Mapping[str, str]) -> str | None:
    """Return the first pattern that gives a reason for an import inside a function."""
    return next((pattern for pattern in reasons if fnmatchcase(line.importer, pattern)), None)


def _largest_circle(limit_name: str, when: str, imports: list[Import], *kinds: Kind) -> Measure:
    graph: dict[str, set[str]] = {}
    for line in imports:
        if line.kind in kinds:
            graph.setdefault(line.importer, set()).add(line.imported)
    sorted_circles = circles(graph)
    return Measure(
        limit_name,
        f"modules in the largest circle of imports, {when}",
        len(sorted_circles[0]) if sorted_circles else 0,
        [f"{len(circle)} modules: {' '.join(sorted(circle))}" for circle in sorted_circles],
        _ADVICE,
    )


def _listed(limit_name: str, title: str, imports: list[Import]) -> Measure:
    places = [f"{line.location} {line.imported}" for line in imports]
    return Measure(limit_name, title, len(places), places, _ADVICE)


def _past_rooms(modules: Sequence[Module]) -> Measure:
    places = [
        f"{module.location(node)} {name}"
        for module in modules
        if module.name.partition(".")[0] != "slicewise"
        for node, _ in _statements(module.tree, "module")
        for name in _named_modules(node)
        if name.startswith("slicewise.") and name.count(".") > 1
        if name.split(".")[1] not in _PROGRAMS
    ]
    return Measure(
        "room_imports",
        "imports by servers of modules inside a room of the SDK",
        len(places),
        places,
        "Import the name from the room, and export the name there.",
    )


def _named_modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return the modules that an import names; `from a import b` names `a`, whatever `b` is."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""]


def _of_test_modules(checkout: Checkout) -> Measure:
    lines = list(_imports([*checkout.modules, *checkout.suite]))
    lines = [line for line in lines if line.imported.rpartition(".")[2].startswith("test_")]
    places = [f"{line.location} {line.imported}" for line in lines]
    return Measure(
        "test_module_imports",
        "test modules imported by other modules",
        len({line.imported for line in lines}),
        list(dict.fromkeys(places)),
        "Move the shared name to a module beside, named for the things that it holds.",
    )


def _imports(modules: Sequence[Module]) -> Iterator[Import]:
    by_name = {module.name: module for module in modules}
    for module in modules:
        for node, kind in _statements(module.tree, "module"):
            for name in _imported_names(module, node):
                imported = _module_of(name, by_name)
                if imported is not None and imported != module.name:
                    yield Import(module.name, imported, kind, module.location(node))


def _statements(parent: ast.AST, kind: Kind) -> Iterator[tuple[ast.Import | ast.ImportFrom, Kind]]:
    """Find all imports below a node, with the kind of place where each stands."""
    for child in ast.iter_child_nodes(parent):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, kind
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _statements(child, "function")
        elif isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            yield from _statements(child, "typing")
        else:
            yield from _statements(child, kind)


def _imported_names(module: Module, node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = node.module or ""
    if node.level:
        names = module.name.split(".")
        parents = names[: len(names) - node.level + module.is_package]
        base = ".".join([*parents, *([node.module] if node.module else [])])
    return [f"{base}.{alias.name}" for alias in node.names]


def _module_of(name: str, modules: Mapping[str, Module]) -> str | None:
    """Return the module that `name` is or lies in, None where there is no such module."""
    if name in modules:
        return name
    parent = name.rpartition(".")[0]
    return parent if parent in modules else None
