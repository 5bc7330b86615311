"""Static files under names that hold a hash of their content, compressed once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from re import Match

from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.storage import CompressedManifestStaticFilesStorage

_YEAR_SECONDS = 31_536_000


class HashedFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """A storage that also writes hashed names into style sheets and modules that name files."""

    support_js_module_import_aggregation = True

    def url_converter(
        self, name: str, hashed_files: dict[str, str], template: str | None = None
    ) -> Callable[[Match[str]], str]:
        """Return the function that writes hashed names into a file.

        In scripts of libraries a name without a file stays: comments name files too, and the
        pattern cannot tell a comment from code.
        """
        convert: Callable[[Match[str]], str] = super().url_converter(name, hashed_files, template)
        if name.endswith(".js") and "/" in name:
            return partial(_convert_or_leave, convert)
        return convert


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]
    """A middleware by which browsers cache hashed files for a year, other files for a minute."""

    FOREVER = _YEAR_SECONDS


def _convert_or_leave(convert: Callable[[Match[str]], str], match: Match[str]) -> str:
    try:
        return convert(match)
    except ValueError:
        return match["matched"]
