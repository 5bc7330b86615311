"""The process itself: garbage collection, locale, folders of its own."""

from slicewise.process.gc_tuning import freeze_loaded_objects
from slicewise.process.locales import with_utf8_names
from slicewise.process.own_folders import ForeignFolderError, ensure_folder

__all__ = ["ForeignFolderError", "ensure_folder", "freeze_loaded_objects", "with_utf8_names"]
