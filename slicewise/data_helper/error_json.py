"""Errors of a storage in the messages of the helper, with the class of each error."""

import errno
from typing import Any

from slicewise.io.base import NoStorageError
from slicewise.plugins import PluginError
from slicewise.runner.wire import Message
from slicewise.storage.storage_errors import (
    StagingLostError,
    StorageError,
    TryAgainError,
    UnfitFileSystemError,
    UnfitLocationError,
    UnfitStoreError,
)

_LONGEST = 4000
# From special classes to general ones: the first class that an error is an instance of counts.
_CLASSES: dict[str, type[Exception]] = {
    cls.__name__: cls
    for cls in (
        *(
            StagingLostError,
            UnfitFileSystemError,
            UnfitStoreError,
            UnfitLocationError,
            StorageError,
        ),
        *(TryAgainError, OSError, NoStorageError, PluginError, ValueError, TypeError, LookupError),
        *(ArithmeticError, AttributeError, RuntimeError, Exception),
    )
}


def error_to_json(error: BaseException) -> Message:
    """Return an error as a message."""
    name = next((name for name, cls in _CLASSES.items() if isinstance(error, cls)), "Exception")
    text = str(error)
    if name != type(error).__name__ and not isinstance(error, StorageError | OSError):
        text = f"{type(error).__name__}: {text}"
    fields: Message = {"class": name, "message": text[:_LONGEST]}
    if isinstance(error, OSError):
        fields["errno"] = error.errno
        fields["strerror"] = None if error.strerror is None else str(error.strerror)[:_LONGEST]
        fields["files"] = [_text(error.filename), _text(error.filename2)]
    return fields


def error_from_json(fields: object) -> Exception:
    """Return the error of a message. Raises ValueError for a message without an error."""
    if not isinstance(fields, dict) or not _is_text(fields.get("message")):
        raise ValueError("the error has an unknown form")
    cls, message = _CLASSES.get(str(fields.get("class"))), fields["message"]
    if cls is None:
        raise ValueError("the class of the error is unknown")
    if not issubclass(cls, OSError):
        # Some classes make the message from other arguments, which are not sent.
        error = cls.__new__(cls)
        Exception.__init__(error, message)
        return error
    return _os_error(cls, fields)


def _os_error(cls: type[OSError], fields: Message) -> OSError:
    number, text, files = fields.get("errno"), fields.get("strerror"), fields.get("files")
    if number is None:
        return OSError(fields["message"])
    if type(number) is not int or number not in errno.errorcode or not _is_text(text):
        raise ValueError("the number of the error is unknown")
    if not isinstance(files, list) or len(files) != 2 or not all(map(_is_text_or_none, files)):
        raise ValueError("the error has an unknown form")
    if cls is TryAgainError:
        return TryAgainError(str(text))
    return OSError(number, text, files[0], None, files[1])


def _text(name: Any) -> str | None:
    return None if name is None else str(name)[:_LONGEST]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST


def _is_text_or_none(value: object) -> bool:
    return value is None or _is_text(value)
