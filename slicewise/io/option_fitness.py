"""Checks of an asset's storage options when the asset is declared."""

from urllib.parse import urlsplit

from slicewise.errors import DefinitionError
from slicewise.io.base import Storage, WriteMode, find_storage
from slicewise.io.formats import checked_format


def format_at(uri: str | None, declared_format: object) -> str | None:
    """Return the format of an asset's files; None if no storage writes files at the URI.

    Raises DefinitionError for a format that the storage does not write.
    """
    storage = find_storage(uri)
    if storage is not None and storage.formats and uri is not None:
        return checked_format(declared_format, uri, storage.formats)
    if declared_format is not None:
        raise DefinitionError(
            f"format={declared_format!r} says how the files of an asset are written, and"
            f" {_where(uri, storage)}; leave format out"
        )
    return None


def check_kept(
    uri: str | None, write_mode: WriteMode, *, partitioned: bool, validated: bool
) -> None:
    """Raise DefinitionError if a function's data cannot be stored, or validated, as declared.

    Without a storage the function writes the data, and the write mode describes the function.
    """
    storage = find_storage(uri)
    if storage is None or uri is None:
        if validated:
            raise DefinitionError(
                f"outlet_validations read the data of a run, and {_where(uri, storage)};"
                " write a uri that Slicewise reads, or validate in the function"
            )
        return
    if write_mode not in storage.write_modes:
        shown = " or ".join(f'"{mode}"' for mode in storage.write_modes)
        raise DefinitionError(
            f"write_mode of an asset at {urlsplit(uri).scheme}: URIs is {shown}, not {write_mode!r}"
        )
    problem = storage.problem(uri, partitioned=partitioned)
    if problem is not None:
        raise DefinitionError(problem)


def _where(uri: str | None, storage: type[Storage] | None) -> str:
    if not uri:
        return "the asset has no uri"
    scheme = urlsplit(uri).scheme
    if storage is None:
        return (
            f"no installed storage reads or writes {scheme}: URIs"
            if scheme
            else "the uri of the asset has no scheme"
        )
    return f"data at {scheme}: URIs has no files"
