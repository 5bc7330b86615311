"""Extensions of Slicewise by installed packages: kinds of partitions and mappings, schemes of URIs.

A package declares extensions by entry points. A definition file cannot add extensions: servers read
definitions from JSON without running code of definition files, and know only installed packages.
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
# The path at the start of the process: while a bundle is loaded, its folder is on sys.path, too.
_PATH = tuple(sys.path)
_KIND = re.compile(r"[a-z][a-z0-9_]{0,19}")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_PACKAGE = __name__.partition(".")[0]
_built_in: dict[tuple[str, str], type] = {}
_bases: dict[str, type] = {}
_reserved: dict[str, frozenset[str]] = {}
_duplicates: dict[tuple[str, str], str] = {}


class PluginError(DefinitionError):
    """A plug-in is missing, broken, or not installed where the plug-in is needed."""


class DuplicatePluginError(PluginError):
    """Several packages have an entry point of one name in a group, so that none of them is used."""


@dataclass(frozen=True)
class Plugin:
    """An entry point and the name of its package."""

    entry: EntryPoint
    package: str

    def __str__(self) -> str:
        return f"{self.entry.name} = {self.entry.value} of {self.package}"


def register_base(group: str, cls: type, *, reserved: Iterable[str] = ()) -> None:
    """Register the base class of the kinds of a group.

    ``reserved`` are kinds of Slicewise itself that are only loaded when needed.
    """
    _bases[group] = cls
    _reserved[group] = frozenset(reserved)


def register(group: str, kind: str, cls: type) -> None:
    """Register a kind of Slicewise itself. Raises TypeError if a plug-in takes such a name."""
    if group == IO and not _SCHEME.fullmatch(kind):
        raise TypeError(f"{kind!r} is no scheme of URIs in lower case")
    if group != IO and not _KIND.fullmatch(kind):
        raise TypeError(f"{kind!r} is no kind: use at most 20 lower-case letters, digits and _")
    if cls.__module__.partition(".")[0] == _PACKAGE:
        _built_in[group, kind] = cls
    elif (group, kind) in _built_in or kind in _reserved.get(group, ()):
        raise TypeError(f"{kind!r} is a {_WHAT[group]} of Slicewise's own: take another name")


def find(group: str, kind: object) -> Any:
    """Return the class of a kind, built in or from an installed package.

    Raises PluginError with the kind and the group if the kind is unknown or cannot be loaded;
    DuplicatePluginError if several packages have the kind.
    """
    built_in = _built_in.get((group, str(kind)))
    if built_in is None:
        plugin = _installed(group).get(str(kind))
        if (group, str(kind)) in _duplicates:
            raise DuplicatePluginError(
                f"the {_WHAT[group]} {kind!r} is declared by several packages, so that no"
                f" package is used: {_duplicates[group, str(kind)]} ({group}); remove all but one"
            )
        if plugin is None:
            raise PluginError(
                f"unknown kind of {_WHAT[group]}: {kind!r}; no package that is installed here has"
                f" an entry point of that name in the group {group!r}"
            )
        return _loaded(group, plugin)
    return built_in


def has(group: str, kind: str) -> bool:
    """Return whether `find` knows a kind, even if the kind cannot be used."""
    is_registered = kind in _installed(group) or (group, kind) in _built_in
    return is_registered or (group, kind) in _duplicates


def load(group: str) -> Mapping[str, object]:
    """Return the objects of installed packages in a group, by name, without plug-ins that cannot be
    loaded.

    Each plug-in is loaded once in a process. A broken plug-in is left out with a warning that names
    the plug-in and its package.
    """
    objects: dict[str, object] = {}
    for name, plugin in _installed(group).items():
        try:
            objects[name] = _loaded(group, plugin)
        except PluginError as error:
            warnings.warn(str(error), stacklevel=2)
    return MappingProxyType(objects)


def is_installed(cls: type) -> bool:
    """Return whether a class of definitions or mappings is known to all processes of a server.

    Such a class is built in, or loaded from the entry point of an installed package.
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
    """Raise PluginError for a definition or mapping of a class that no installed package has.

    The definitions inside products are checked, too. The message shows the missing lines of a
    pyproject.toml.
    """
    for dimension in getattr(thing, "dimensions", ()):
        if dimension.definition is not thing:
            check_installed(dimension.definition)
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
    """Add folders whose packages count as installed, such as folders added to sys.path later."""
    global _PATH
    _PATH = (*_PATH, *folders)
    _installed.cache_clear()


@cache
def _installed(group: str) -> Mapping[str, Plugin]:
    """Return the entry points of a group, by name. Nothing is imported yet."""
    plugins: dict[str, list[Plugin]] = {}
    for package, distribution in _packages().items():
        for entry in distribution.entry_points:
            if entry.group == group:
                plugins.setdefault(entry.name, []).append(Plugin(entry, package))
    return {
        name: chosen
        for name in sorted(plugins)
        if (chosen := _usable_plugin(group, name, plugins[name]))
    }


def _packages() -> dict[str, Distribution]:
    """Return installed packages by name; of two versions on the path the first version counts."""
    packages: dict[str, Distribution] = {}
    for distribution in distributions(path=list(_PATH)):
        packages.setdefault(distribution.name or "", distribution)
    return packages


def _usable_plugin(group: str, name: str, plugins: list[Plugin]) -> Plugin | None:
    if (group, name) in _built_in or name in _reserved.get(group, ()):
        reason = "the name is one of Slicewise's own"
    elif len(plugins) > 1:
        # The order of packages, and so the meaning of a definition, would depend on the host.
        reason = "several packages have an entry point of that name"
        _duplicates[group, name] = ", ".join(map(str, plugins))
    else:
        return plugins[0]
    shown = ", ".join(map(str, plugins))
    warnings.warn(f"{reason}, so the plug-in is left out: {shown} ({group})", stacklevel=2)
    return None


_results: dict[tuple[str, str], "object | PluginError"] = {}


def _loaded(group: str, plugin: Plugin) -> Any:
    key = (group, plugin.entry.name)
    if key not in _results:
        _results[key] = _load_or_error(group, plugin)
    result = _results[key]
    if isinstance(result, PluginError):
        raise PluginError(str(result))
    return result


def _load_or_error(group: str, plugin: Plugin) -> "object | PluginError":
    try:
        plugin_object: object = plugin.entry.load()
        _check_module_file(plugin.entry.module)
        if group in _bases:
            _check_class(plugin.entry.name, plugin_object, _bases[group])
    except (Exception, SystemExit) as error:
        # No fault of another package may stop code that does not need that package.
        return PluginError(
            f"the plug-in {plugin} ({group}) cannot be used: {type(error).__name__}: {error}"
        )
    return plugin_object


def _check_module_file(module: str) -> None:
    """Refuse a module of a definition file that has the name of the package's own module."""
    file = getattr(sys.modules[module], "__file__", None)
    for folder in set(sys.path) - set(_PATH):
        if file is not None and folder and Path(file).is_relative_to(folder):
            raise ImportError(f"{file} has the name of the package's own module {module}")


def _check_class(name: str, plugin_object: object, base: type) -> None:
    if not isinstance(plugin_object, type) or not issubclass(plugin_object, base):
        raise TypeError(f"it is no subclass of {base.__name__}")
    if getattr(plugin_object, "kind", None) != name:
        raise TypeError(
            f'{plugin_object.__name__} must be declared with kind="{name}", as its entry point'
        )
