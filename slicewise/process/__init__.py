"""The process itself: garbage collection, locale, folders of its own."""

from slicewise.process.gc_tuning import freeze_what_is_loaded
from slicewise.process.locales import with_utf8_names
from slicewise.process.own_folders import ForeignFolderError, own_folder

__all__ = ["ForeignFolderError", "freeze_what_is_loaded", "own_folder", "with_utf8_names"]
