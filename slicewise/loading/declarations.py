"""The JSON of all declarations in the files of a bundle."""

import json
from typing import Any, NamedTuple

from slicewise.declaring.registry import Registry
from slicewise.declaring.specs import ProducerSpec
from slicewise.errors import DefinitionError
from slicewise.loading.bundle_checks import Errors, add_error
from slicewise.texts.tracebacks import error_text, one_line

Json = dict[str, Any]


class Declarations(NamedTuple):
    """The JSON of producers, and of assets that other programs write, for the loader's report."""

    producers: list[Json]
    assets: list[Json]


def declarations_json(registry: Registry, errors: Errors) -> Declarations:
    """Return the declarations of all files that are not broken, by file and line.

    Code of the files runs here as well, such as `__str__` of a key class. A declaration whose JSON
    cannot be made is an error of the declaration's file, and that file then declares nothing.
    """
    broken: set[str] = set()
    entries: dict[bool, list[Json]] = {True: [], False: []}
    for has_function, declared in (
        *((True, producer) for producer in registry.producers()),
        *((False, asset) for asset in registry.external()),
    ):
        try:
            entry = declared.to_json()
            if has_function:
                entry["references"] = _references(entry, registry)
            json.dumps(entry, allow_nan=False)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            reason = error_text(error) if isinstance(error, DefinitionError) else one_line(error)
            add_error(errors, declared.refused(reason), registry.folder)
            broken.add(declared.site.file)
        else:
            entries[has_function].append(entry)
    return Declarations(
        *([entry for entry in entries[kind] if entry["file"] not in broken] for kind in entries)
    )


def _references(entry: Json, registry: Registry) -> list[str]:
    """Return the names of upstream assets that no file of the bundle declares; another bundle may
    declare such assets.
    """
    return sorted({*ProducerSpec.from_json(entry).upstream_names} - registry.assets.keys())
