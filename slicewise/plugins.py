"""What installed packages add to Slicewise: kinds of partitions and mappings, schemes of URIs.

A package says so by entry points. A definition file cannot add anything: servers read definitions
from JSON where none of its code runs, and then only know what is installed.
"""

import re
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, EntryPoint, distributions
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from slicewise.errors import DefinitionError

PARTITIONS: Final = "slicewise.partitions"
MAPPINGS: Final = "slicewise.mappings"
URI_SCHEMES: Final = "slicewise.uri_schemes"
IO: Final = "slicewise.io"

_WHAT = {PARTITIONS: "partition definition", MAPPINGS: "partition mapping", IO: "storage"}
# Of the process, not of the moment: while a bundle is loaded its folder is on the path as well.
_PATH = tuple(sys.path)
_KIND = re.compile(r"[a-z][a-z0-9_]{0,19}")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_PACKAGE = __name__.partition(".")[0]
_built_in: dict[tuple[str, str], type] = {}
_bases: dict[str, type] = {}
_reserved: dict[str, frozenset[str]] = {}
_duplicates: dict[tuple[str, str], str] = {}


class PluginError(DefinitionError):
    """A plug-in that is missing, broken, or not installed where it is needed."""


class DuplicatePluginError(PluginError):
    """Several packages have an entry point of one name in a group, so that none of them is used."""


@dataclass(frozen=True)
class Plugin:
    """An entry point, and the package that has it."""

    entry: EntryPoint
    package: str

    def __str__(self) -> str:
        return f"{self.entry.name} = {self.entry.value} of {self.package}"


def register_base(group: str, cls: type, *, reserved: Iterable[str] = ()) -> None:
    """Say of which class the kinds of a group are.

    ``reserved`` are kinds of Slicewise's own that are only loaded when they are needed.
    """
    _bases[group] = cls
    _reserved[group] = frozenset(reserved)


def register(group: str, kind: str, cls: type) -> None:
    """Keep a kind that Slicewise itself has. Raises TypeError where a plug-in takes its name."""
    if group == IO and not _SCHEME.fullmatch(kind):
        raise TypeError(f"{kind!r} is no scheme of URIs in lower case")
    if group != IO and not _KIND.fullmatch(kind):
        raise TypeError(f"{kind!r} is no kind: use at most 20 lower-case letters, digits and _")
    if cls.__module__.partition(".")[0] == _PACKAGE:
        _built_in[group, kind] = cls
    elif (group, kind) in _built_in or kind in _reserved.get(group, ()):
        raise TypeError(f"{kind!r} is a {_WHAT[group]} of Slicewise's own: take another name")


def find(group: str, kind: object) -> Any:
    """Return the class of a kind, built in or of an installed package.

    Raises PluginError, which names kind and group, where there is none or it cannot be loaded;
    DuplicatePluginError where several packages have one.
    """
    found = _built_in.get((group, str(kind)))
    if found is None:
        plugin = _installed(group).get(str(kind))
        if (group, str(kind)) in _duplicates:
            raise DuplicatePluginError(
                f"the {_WHAT[group]} {kind!r} is brought by several packages, and none of them is"
                f" used: {_duplicates[group, str(kind)]} ({group}); remove all but one"
            )
        if plugin is None:
            raise PluginError(
                f"unknown kind of {_WHAT[group]}: {kind!r}; no package that is installed here has"
                f" an entry point of that name in the group {group!r}"
            )
        return _loaded(group, plugin)
    return found


def has(group: str, kind: str) -> bool:
    """Return whether `find` knows of a kind, though it may say that it cannot be used."""
    known = kind in _installed(group) or (group, kind) in _built_in
    return known or (group, kind) in _duplicates


def load(group: str) -> Mapping[str, object]:
    """What installed packages have in a group, by name; without what cannot be loaded.

    Each plug-in is loaded once in a process. One that is broken is left out with a warning that
    names it and its package.
    """
    found: dict[str, object] = {}
    for name, plugin in _installed(group).items():
        try:
            found[name] = _loaded(group, plugin)
        except PluginError as error:
            warnings.warn(str(error), stacklevel=2)
    return MappingProxyType(found)


def is_installed(cls: type) -> bool:
    """Return whether a class of definitions or mappings is known to all processes of a server.

    It is where it is built in, or loaded from the entry point of an installed package.
    """
    kind = getattr(cls, "kind", "")
    group = _group_of(cls)
    if group is None or _built_in.get((group, kind)) is cls:
        return group is not None
    plugin = _installed(group).get(kind)
    try:
        return plugin is not None and _loaded(group, plugin) is cls
    except PluginError:
        return False


def check_installed(thing: object) -> None:
    """Raise PluginError for a definition or mapping of a class that no package brings.

    Looks into products as well. The message shows the lines of a pyproject.toml that are missing.
    """
    for each in getattr(thing, "dimensions", ()):
        if each.definition is not thing:
            check_installed(each.definition)
    cls = type(thing)
    group = _group_of(cls)
    if group is None or is_installed(cls):
        return
    raise PluginError(
        f"{cls.__name__} is a {_WHAT[group]} of no installed package: servers load those from"
        " packages only, never from definition files. Move it into a package of its own, whose"
        f' pyproject.toml says\n\n[project.entry-points."{group}"]\n'
        f'{_own_kind(cls)} = "{cls.__module__}:{cls.__qualname__}"\n'
    )


def _group_of(cls: type) -> str | None:
    return next((group for group, base in _bases.items() if issubclass(cls, base)), None)


def _own_kind(cls: type) -> str:
    return str(vars(cls).get("kind", cls.__name__.lower()))


def look_also_in(folders: Sequence[str]) -> None:
    """Have packages in folders of which Python learned after its start count as installed."""
    global _PATH
    _PATH = (*_PATH, *folders)
    _installed.cache_clear()


@cache
def _installed(group: str) -> Mapping[str, Plugin]:
    """The entry points of a group, by name. Nothing is imported yet."""
    found: dict[str, list[Plugin]] = {}
    for package, distribution in _packages().items():
        for entry in distribution.entry_points:
            if entry.group == group:
                found.setdefault(entry.name, []).append(Plugin(entry, package))
    return {name: chosen for name in sorted(found) if (chosen := _only(group, name, found[name]))}


def _packages() -> dict[str, Distribution]:
    """Installed packages by name; of two versions on the path the first one counts."""
    packages: dict[str, Distribution] = {}
    for distribution in distributions(path=list(_PATH)):
        packages.setdefault(distribution.name or "", distribution)
    return packages


def _only(group: str, name: str, plugins: list[Plugin]) -> Plugin | None:
    if (group, name) in _built_in or name in _reserved.get(group, ()):
        reason = "the name is one of Slicewise's own"
    elif len(plugins) > 1:
        # Which comes first would depend on the host, and so would what a definition means.
        reason = "several packages have an entry point of that name"
        _duplicates[group, name] = ", ".join(map(str, plugins))
    else:
        return plugins[0]
    shown = ", ".join(map(str, plugins))
    warnings.warn(f"{reason}, so it is left out: {shown} ({group})", stacklevel=2)
    return None


_results: dict[tuple[str, str], "object | PluginError"] = {}


def _loaded(group: str, plugin: Plugin) -> Any:
    key = (group, plugin.entry.name)
    if key not in _results:
        _results[key] = _try(group, plugin)
    result = _results[key]
    if isinstance(result, PluginError):
        raise PluginError(str(result))
    return result


def _try(group: str, plugin: Plugin) -> "object | PluginError":
    try:
        found: object = plugin.entry.load()
        _check_place(plugin.entry.module)
        if group in _bases:
            _check_class(plugin.entry.name, found, _bases[group])
    except (Exception, SystemExit) as error:
        # Another package's fault, whatever it is, is not to stop what does not need it.
        return PluginError(
            f"the plug-in {plugin} ({group}) cannot be used: {type(error).__name__}: {error}"
        )
    return found


def _check_place(module: str) -> None:
    """Refuse a module that a definition file has put before the package's own."""
    file = getattr(sys.modules[module], "__file__", None)
    for folder in set(sys.path) - set(_PATH):
        if file is not None and folder and Path(file).is_relative_to(folder):
            raise ImportError(f"{file} has the name of the package's own module {module}")


def _check_class(name: str, thing: object, base: type) -> None:
    if not isinstance(thing, type) or not issubclass(thing, base):
        raise TypeError(f"it is no subclass of {base.__name__}")
    if getattr(thing, "kind", None) != name:
        raise TypeError(f'{thing.__name__} must be declared with kind="{name}", as its entry point')
