"""Write docs/reference/sdk.md from signatures and docstrings; ``make reference`` calls this module.

griffe reads the source and imports nothing: annotations and defaults stay as written.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import griffe

PROJECT = Path(__file__).resolve().parent.parent.parent
REFERENCE = PROJECT / "docs/reference/sdk.md"
WIDTH = 100
# What exported names hand to people, who need not import it.
HANDED = {
    "asset.multi": "declaring.multi_asset.multi",
    "AssetColumn": "declaring.declared_asset.AssetColumn",
    "MultiAsset": "declaring.multi_asset.MultiAsset",
    "PartitionContext": "running.context.PartitionContext",
    "ProducedAsset": "declaring.decorator.ProducedAsset",
    "TimeDefinition": "partitions.definition.TimeDefinition",
    "WindowSequence": "partitions.windows.WindowSequence",
}
# What servers and the package's own modules ask of these classes, and may ask otherwise tomorrow.
INTERNAL = {
    *("space", "canonical", "shape", "read_bounds", "values", "of_parts"),
    *("outlet_spec", "producer_spec", "schedule_json", "asset_names", "made_by", "refused"),
    *("with_keys", "united", "read_selection", "discovers_keys"),
    *("first_second", "stop_second", "KeySet.windows"),
    *("PartitionByTime.zone", "TimeDefinition.zone"),
}
# Type variables of bases, by the types that exported classes have in their place.
TYPES = {"DefinitionT": "PartitionDefinition"}
HEAD = """\
# Reference: everything that `slicewise` exports

Written by `make reference` from signatures and docstrings; the guides say how the parts are used,
and [declaring assets](assets.md) has the arguments of `@asset` in a table. Errors are `ValueError`s
unless said otherwise.
"""


def package() -> griffe.Module:
    """Read the package with griffe."""
    loaded = griffe.load("slicewise", search_paths=[PROJECT], resolve_aliases=True)
    assert isinstance(loaded, griffe.Module)
    return loaded


def exported(module: griffe.Module) -> dict[str, griffe.Object]:
    """Return the public objects of the package, with those for unit tests, by name."""
    testing = module["testing"]
    members_by_name = {name: _target(module[name]) for name in map(str, module.exports or ())}
    tried = {f"testing.{name}": _target(testing[name]) for name in map(str, testing.exports or ())}
    handed = {name: _target(module[path]) for name, path in HANDED.items()}
    return {**members_by_name, **tried, **handed}


def members(cls: griffe.Class, public: Iterable[griffe.Object]) -> dict[str, griffe.Object]:
    """Find a class's public methods, properties and documented attributes, in order of the source.

    Special methods count where a docstring documents them. Members of a public base are left to the
    entry of that base.
    """
    public_paths = {public_object.path for public_object in public}
    inherited: dict[str, griffe.Object] = {}
    for base in (cls, *cls.mro()):
        if base is not cls and base.path in public_paths:
            continue
        for name, member in base.members.items():
            if not member.is_alias and _is_shown(name, _target(member)):
                inherited.setdefault(name, _target(member))
    return inherited


def document_text() -> str:
    """Return the text of the document."""
    module = package()
    public = exported(module)
    errors = {name for name, public_object in public.items() if name.endswith("Error")}
    functions = {name for name, public_object in public.items() if public_object.is_function}
    names_by_title = {
        "Classes and decorators": public.keys() - errors - functions - HANDED.keys(),
        "Handed out, and not imported": HANDED.keys(),
        "Functions": functions,
        "Errors": errors,
    }
    blocks = [HEAD]
    for title, names in names_by_title.items():
        blocks.append(f"## {title}\n")
        for name in sorted(names, key=lambda name: (name.casefold(), name)):
            blocks += _entry(name, public[name], public)
    blocks += _aliases(module, public.values())
    return "\n".join(blocks)


def _target(thing: griffe.Object | griffe.Alias) -> griffe.Object:
    return thing.final_target if isinstance(thing, griffe.Alias) else thing


def _is_shown(name: str, member: griffe.Object) -> bool:
    is_special = name.startswith("__")
    if not INTERNAL.isdisjoint((name, ".".join(member.path.split(".")[-2:]))):
        return False
    if name in ("__init__", "__new__") or (name.startswith("_") and not is_special):
        return False
    if is_special or (member.is_attribute and "property" not in member.labels):
        return member.docstring is not None
    return member.is_function or member.is_attribute


def _entry(name: str, thing: griffe.Object, public: dict[str, griffe.Object]) -> Iterator[str]:
    prefix = "slicewise." if name.startswith("testing.") else ""
    yield f"### `{prefix}{name}`\n"
    if isinstance(thing, griffe.Class):
        bases = [str(base).partition("[")[0] for base in thing.bases]
        shown = ", ".join(f"[`{base}`](#{base.lower()})" for base in bases if base in public)
        if shown:
            yield f"Base: {shown}\n"
        if signature := _class_signature(thing):
            yield f"```\n{signature}\n```\n"
        yield _text(thing)
        for member_name, member in members(thing, public.values()).items():
            yield from _member(member_name, member)
    elif isinstance(thing, griffe.Function):
        yield f"```\n{_signature(thing.name, thing.parameters, thing.returns)}\n```\n"
        yield _text(thing)


def _member(name: str, member: griffe.Object) -> Iterator[str]:
    if isinstance(member, griffe.Function):
        kind = next(
            (f"{label} " for label in ("classmethod", "staticmethod") if label in member.labels), ""
        )
        yield f"- `{kind}{_signature(name, member.parameters, member.returns, width=None)}`\n"
    elif isinstance(member, griffe.Attribute):
        annotation = f": {member.annotation}" if member.annotation is not None else ""
        yield f"- `{name}{annotation}`\n"
    yield re.sub(r"^(?=.)", "  ", _text(member), flags=re.MULTILINE)


def _class_signature(cls: griffe.Class) -> str | None:
    if list(cls.parameters):
        return _signature(cls.name, cls.parameters, None)
    if "NamedTuple" in map(str, cls.bases):
        fields = (field for field in cls.attributes.values() if field.annotation is not None)
        return f"{cls.name}({', '.join(f'{field.name}: {field.annotation}' for field in fields)})"
    return None


def _signature(
    name: str,
    parameters: griffe.Parameters,
    returns: object,
    width: int | None = WIDTH,
) -> str:
    """Return the signature as in the source: on one line, or with a parameter on each line."""
    shown = list(_parameters(parameters))
    arrow = f" -> {_unquoted(returns)}" if returns is not None else ""
    line = f"{name}({', '.join(shown)}){arrow}"
    if width is None or len(line) <= width:
        return line
    lines = "".join(f"    {parameter},\n" for parameter in shown)
    return f"{name}(\n{lines}){arrow}"


def _parameters(parameters: griffe.Parameters) -> Iterator[str]:
    kinds = griffe.ParameterKind
    starred = False
    for parameter in parameters:
        if parameter.name in ("self", "cls") or parameter.name.startswith("_"):
            continue
        if parameter.kind is kinds.keyword_only and not starred:
            yield "*"
        starred = starred or parameter.kind in (kinds.keyword_only, kinds.var_positional)
        yield _parameter(parameter)


def _parameter(parameter: griffe.Parameter) -> str:
    if parameter.kind in (griffe.ParameterKind.var_positional, griffe.ParameterKind.var_keyword):
        stars = "*" if parameter.kind is griffe.ParameterKind.var_positional else "**"
        return f"{stars}{parameter.name}: {_unquoted(parameter.annotation)}"
    annotation = f": {_unquoted(parameter.annotation)}" if parameter.annotation is not None else ""
    equals = " = " if annotation else "="
    return f"{parameter.name}{annotation}" + (
        f"{equals}{parameter.default}" if parameter.default else ""
    )


def _unquoted(annotation: object) -> str:
    """Remove quotes: the source quotes names that come later, and readers need no quotes."""
    text = re.sub(r"\w+", lambda name: TYPES.get(name[0], name[0]), str(annotation))
    return text if "Literal[" in text else text.replace('"', "").replace("'", "")


def _text(thing: griffe.Object) -> str:
    docstring = thing.docstring.value if thing.docstring is not None else ""
    return docstring.replace("``", "`") + "\n"


def _aliases(module: griffe.Module, public: Iterable[griffe.Object]) -> Iterator[str]:
    """Yield the names that stand for types and defaults in signatures, with their values."""
    aliases: dict[str, str] = {}
    for thing in public:
        for expression in _annotations(thing, public):
            for node in expression.iterate(flat=True):
                alias = _alias(module, node)
                if alias is not None and alias.name not in TYPES:
                    aliases[alias.name] = str(alias.value)
    if aliases:
        yield "## Names in signatures\n"
        yield "".join(
            f"- `{name} = {aliases[name]}`\n" for name in sorted(aliases, key=str.casefold)
        )


def _annotations(thing: griffe.Object, public: Iterable[griffe.Object]) -> Iterator[griffe.Expr]:
    callables = [thing]
    if isinstance(thing, griffe.Class):
        callables += members(thing, public).values()
    for callable in callables:
        if isinstance(callable, griffe.Class | griffe.Function):
            annotations: list[object] = [parameter.annotation for parameter in callable.parameters]
            annotations += [parameter.default for parameter in callable.parameters]
            annotations += [callable.returns] if isinstance(callable, griffe.Function) else []
            yield from (every for every in annotations if isinstance(every, griffe.Expr))


def _alias(module: griffe.Module, name: object) -> griffe.Attribute | None:
    if not isinstance(name, griffe.ExprName) or not name.canonical_path.startswith("slicewise."):
        return None
    target = _target(module[name.canonical_path.removeprefix("slicewise.")])
    return target if isinstance(target, griffe.Attribute) else None


if __name__ == "__main__":
    REFERENCE.write_text(document_text())
