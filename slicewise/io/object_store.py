"""A bucket as the log of publications uses it: small objects that are created, never overwritten.

By obstore, since pyarrow cannot create an object only where there is none.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from configparser import ConfigParser, Error
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)
from obstore.store import GCSStore, LocalStore, ObjectStore, S3Store

from slicewise.storage.errors import StorageError, TryAgainError, UnfitStoreError

_CLIENT: Mapping[str, Any] = {"connect_timeout": "5s", "timeout": "30s"}
_RETRIES: Mapping[str, Any] = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}

_KEYS = frozenset({"access_key_id", "secret_access_key"})
_LASTING = (
    *(InvalidPathError, NotSupportedError),
    *(PermissionDeniedError, UnauthenticatedError, UnknownConfigurationKeyError),
)
# What obstore has no error of its own for, when it lists objects for anything, is in its text.
_STATUS = re.compile(r"status code: (\d{3})")
_LASTING_STATUSES = frozenset({400, 401, 403, 404, 405, 501})
_ELSEWHERE = "Received redirect"  # of a bucket in another region
_TOO_SLOW = "<Code>RequestTimeout</Code>"  # comes with 400
_UNKNOWN_CONDITION = frozenset({400, 405, 501})

# Stores on which the trial has succeeded.
_fit: set[str] = set()


@dataclass(frozen=True)
class Store:
    """A bucket, or the part of it below a prefix."""

    client: ObjectStore

    def create(self, path: str, content: bytes) -> bool:
        """Create an object; return whether this call did. The content must be like no other.

        A client that had no answer sends the same again, and is told then that the object is there:
        whose it is, only its content says.
        """
        try:
            obstore.put(self.client, path, content, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return self.get(path) == content
        return True

    def put(self, path: str, content: bytes) -> None:
        """Put an object, also over another; for what is the same whoever puts it."""
        obstore.put(self.client, path, content, use_multipart=False)

    def get(self, path: str) -> bytes | None:
        """Return the content of an object; None where there is none."""
        try:
            return bytes(obstore.get(self.client, path).bytes())
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> list[str]:
        """Return the names of the objects right below a folder."""
        found = obstore.list_with_delimiter(self.client, folder)["objects"]
        return [one["path"].rpartition("/")[2] for one in found]

    def delete(self, path: str) -> None:
        """Delete an object, if it is there."""
        with suppress(FileNotFoundError):
            obstore.delete(self.client, path)

    def refuse_unfit(self, folder: str, uri: str, *, name: str) -> None:
        """Raise UnfitStoreError where objects cannot be created below ``folder`` only once.

        An object is created twice, once for each store, which ``name`` says, and process. What
        keeps the trial from being made (a permission, say) is raised as it is.
        """
        if name in _fit:
            return
        path = f"{folder}/{uuid4().hex}"
        try:
            self._try(path, uri)
        finally:
            with suppress(BaseError):
                self.delete(path)
        _fit.add(name)

    def _try(self, path: str, uri: str) -> None:
        try:
            self.create(path, b"1")
        except BaseError as error:
            if not _may_refuse_condition(error):
                raise
            # Is it the condition that the store refuses, or the object?
            self.put(path, b"1")
            self.delete(path)
            try:
                self.create(path, b"1")
            except BaseError as again:
                if not _may_refuse_condition(again):
                    raise
                raise UnfitStoreError(uri, f"it answers: {first_line(error)}") from error
        if self.create(path, b"2"):
            raise UnfitStoreError(uri, "it puts one object over another")


def store_at(arrow: str, options: Mapping[str, Any]) -> Store:
    """Return the bucket of a URI as pyarrow has it; ``options`` are obstore's.

    What neither says is found where obstore looks: in the environment, and at the services by which
    a cloud gives its machines and containers credentials. Raises ValueError for a URI of another
    scheme, and OSError where the region of a bucket cannot be found.
    """
    parts = urlsplit(arrow)
    if parts.scheme == "file":
        return Store(LocalStore(unquote(parts.path)))
    config: dict[str, Any]
    if parts.scheme == "s3":
        config = {name.lower().removeprefix("aws_"): value for name, value in options.items()}
        if not config.keys() >= _KEYS:
            config = {**_s3_login(parts.username, parts.password), **config}
    elif parts.scheme in ("gs", "gcs"):
        config = {"skip_signature": True} if parts.username == "anonymous" else {}
        config |= options
    else:
        raise ValueError(f"nothing here reaches a bucket by {parts.scheme}: URIs")
    return _connected(arrow, json.dumps(config, sort_keys=True))


@lru_cache(maxsize=64)
def _connected(arrow: str, options: str) -> Store:
    """Keep what holds connections, for as long as who asks is the same."""
    parts = urlsplit(arrow)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    endpoint = query.get("endpoint_override", "")
    url = f"{query.get('scheme', 'https')}://{endpoint}" if endpoint else ""
    shared: Any = {
        "prefix": unquote(parts.path).strip("/") or None,
        "client_options": {**_CLIENT, "allow_http": url.startswith("http:")},
        "retry_config": _RETRIES,
    }
    config: Any
    if parts.scheme == "s3":
        config = {"endpoint": url} if url else {}
        # Not every store deletes several objects by one request, and one is all that is asked.
        config |= {"region": _region(arrow, query), "disable_bulk_delete": True}
        config |= json.loads(options)
        if config.keys() >= _KEYS:
            shared["credential_provider"] = _only(config)
        return Store(S3Store(parts.hostname, config=config, **shared))
    config = {"base_url": url} if url else {}
    config |= json.loads(options)
    return Store(GCSStore(parts.hostname, config=config, **shared))


@contextmanager
def answering(uri: str) -> Iterator[None]:
    """Raise TryAgainError for a store that does not answer, or refuses for now.

    StorageError where it will always refuse: no login or permission, no such bucket or option.
    pyarrow tells of either by an OSError without a number, obstore by errors of its own, and of a
    bucket that is not there as of an object.
    """
    try:
        yield
    except (BaseError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        kind = StorageError if _is_lasting(error) else TryAgainError
        raise kind(f"{uri}: {first_line(error)}") from error


def _is_lasting(error: Exception) -> bool:
    """Whether a store would say the same tomorrow, unless a person does something."""
    if isinstance(error, _LASTING) or _ELSEWHERE in str(error):
        return True
    return _status(error) in _LASTING_STATUSES and _TOO_SLOW not in str(error)


def _may_refuse_condition(error: BaseError) -> bool:
    return isinstance(error, NotSupportedError) or _status(error) in _UNKNOWN_CONDITION


def _status(error: Exception) -> int | None:
    """Return the status of the answer that obstore tells of."""
    match = _STATUS.search(str(error))
    return int(match[1]) if match else None


def first_line(error: Exception) -> str:
    """Return the first line of an error: below it obstore shows its own innards."""
    return str(error).partition("\n")[0]


def _region(arrow: str, query: Mapping[str, str]) -> str:
    if "region" in query:
        return query["region"]
    from pyarrow.fs import FileSystem

    system, _ = FileSystem.from_uri(arrow)  # asks Amazon for the bucket's, where nothing says it
    region: str = system.region
    return region


def _only(config: dict[str, Any]) -> Callable[[], Any]:
    """Take the login out of ``config``; return what gives it to obstore.

    By itself obstore would add the session token of the environment to these keys.
    """
    login = {name: config.pop(name) for name in _KEYS}
    tokens = [config.pop(name, None) for name in ("session_token", "token")]
    return lambda: {**login, "token": tokens[0] or tokens[1], "expires_at": None}


def _s3_login(user: str | None, password: str | None) -> dict[str, str]:
    """Return what says who asks; nothing where obstore is to find it."""
    if user and password:
        return {"access_key_id": unquote(user), "secret_access_key": unquote(password)}
    if "AWS_ACCESS_KEY_ID" in os.environ:
        return {}
    # obstore does not read the file that other tools share, and pyarrow does. There may be none,
    # nor a home, and other tools are not particular about what is in it.
    named = os.environ.get("AWS_SHARED_CREDENTIALS_FILE")
    file = named or os.path.expanduser("~/.aws/credentials")
    profiles = ConfigParser(interpolation=None, strict=False)
    with suppress(OSError, UnicodeDecodeError, Error):
        profiles.read(file)
    profile = os.environ.get("AWS_PROFILE", "default")
    found = profiles[profile] if profiles.has_section(profile) else {}
    names = {
        "access_key_id": "aws_access_key_id",
        "secret_access_key": "aws_secret_access_key",
        "session_token": "aws_session_token",
    }
    login = {own: found[name] for own, name in names.items() if found.get(name)}
    return login if login.keys() >= _KEYS else {}
