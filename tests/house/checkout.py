"""Read the modules and templates of a checkout: each module is parsed once, for all measures."""

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Module:
    """A Python module: its path below the checkout, its dotted name, its source."""

    path: Path
    name: str
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed source."""
        return ast.parse(self.source, str(self.path))

    @property
    def line_count(self) -> int:
        """The number of lines."""
        return self.source.count("\n")

    @property
    def is_package(self) -> bool:
        """Whether the file is the `__init__.py` of a package."""
        return self.path.name == "__init__.py"

    @property
    def app(self) -> str:
        """The top-level package."""
        return self.name.partition(".")[0]

    def location(self, node: ast.AST) -> str:
        """Return the path and line of a node, as editors read it."""
        return f"{self.path}:{getattr(node, 'lineno', 1)}"


@dataclass(frozen=True)
class Checkout:
    """A folder with the packages that its pyproject.toml names for import-linter."""

    folder: Path = field(default=PROJECT)

    @cached_property
    def packages(self) -> list[str]:
        """Names of the top-level packages of the product."""
        text = (self.folder / "pyproject.toml").read_text()
        packages: list[str] = tomllib.loads(text)["tool"]["importlinter"]["root_packages"]
        return packages

    @cached_property
    def modules(self) -> list[Module]:
        """All modules of the product but migrations, in the order of their paths."""
        return [module for package in self.packages for module in self._modules(package)]

    @cached_property
    def suite(self) -> list[Module]:
        """All modules of tests/, in the order of their paths."""
        return list(self._modules("tests"))

    @cached_property
    def bench(self) -> list[Module]:
        """All modules of bench/ but bundles, which stand for user code, in the order of paths."""
        return [m for m in self._modules("bench") if "bundles" not in m.path.parts]

    def _modules(self, package: str) -> Iterator[Module]:
        for file in sorted((self.folder / package).rglob("*.py")):
            path = file.relative_to(self.folder)
            if "migrations" not in path.parts:
                names = path.with_suffix("").parts
                name = ".".join(names[:-1] if names[-1] == "__init__" else names)
                yield Module(path, name, file.read_text())

    @cached_property
    def templates(self) -> dict[Path, list[str]]:
        """The lines of each template, by path below the checkout."""
        return {
            file.relative_to(self.folder): file.read_text().splitlines()
            for file in sorted((self.folder / "templates").rglob("*.html"))
        }
