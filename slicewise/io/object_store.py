"""Buckets for the log of publications: small objects that are created, never overwritten.

Accessed by obstore, since pyarrow cannot create an object only where there is none.
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

from slicewise.storage.storage_errors import StorageError, TryAgainError, UnfitStoreError

_CLIENT: Mapping[str, Any] = {"connect_timeout": "5s", "timeout": "30s"}
_RETRIES: Mapping[str, Any] = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}

_KEYS = frozenset({"access_key_id", "secret_access_key"})
_LASTING = (
    *(InvalidPathError, NotSupportedError),
    *(PermissionDeniedError, UnauthenticatedError, UnknownConfigurationKeyError),
)
# obstore has no class for some errors, for all errors of a listing; the text has the status.
_STATUS = re.compile(r"status code: (\d{3})")
_LASTING_STATUSES = frozenset({400, 401, 403, 404, 405, 501})
_ELSEWHERE = "Received redirect"  # of a bucket in another region
_TOO_SLOW = "<Code>RequestTimeout</Code>"  # comes with 400
_UNKNOWN_CONDITION = frozenset({400, 405, 501})

# Stores on which the trial has succeeded.
_fit: set[str] = set()


@dataclass(frozen=True)
class Store:
    """A bucket, or the objects of a bucket below a prefix."""

    client: ObjectStore

    def create(self, path: str, content: bytes) -> bool:
        """Create an object; return whether this call did. The content must be like no other.

        A client that got no answer sends the same request again, and is told then that the object
        exists: only the content says which worker created the object.
        """
        try:
            obstore.put(self.client, path, content, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return self.get(path) == content
        return True

    def put(self, path: str, content: bytes) -> None:
        """Put an object, also over another; for content that is the same from every worker."""
        obstore.put(self.client, path, content, use_multipart=False)

    def get(self, path: str) -> bytes | None:
        """Return the content of an object; None if there is none."""
        try:
            return bytes(obstore.get(self.client, path).bytes())
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> list[str]:
        """Return the names of the objects right below a folder."""
        objects = obstore.list_with_delimiter(self.client, folder)["objects"]
        return [info["path"].rpartition("/")[2] for info in objects]

    def delete(self, path: str) -> None:
        """Delete an object, or do nothing if there is none."""
        with suppress(FileNotFoundError):
            obstore.delete(self.client, path)

    def refuse_unfit(self, folder: str, uri: str, *, name: str) -> None:
        """Raise UnfitStoreError if the store cannot create objects below ``folder`` only once.

        The trial creates an object twice, once for each store (by ``name``) and process. An error
        that prevents the trial (a missing permission, say) is raised unchanged.
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
            # Does the store refuse the condition, or the object?
            self.put(path, b"1")
            self.delete(path)
            try:
                self.create(path, b"1")
            except BaseError as again:
                if not _may_refuse_condition(again):
                    raise
                raise UnfitStoreError(uri, f"the store answers: {first_line(error)}") from error
        if self.create(path, b"2"):
            raise UnfitStoreError(uri, "the store lets one object replace another one")


def store_at(arrow: str, options: Mapping[str, Any]) -> Store:
    """Return the store of a bucket, given by pyarrow's URI; ``options`` are obstore's.

    Settings that neither of them contains are found where obstore looks: in the environment, and at
    the services by which a cloud gives credentials to machines and containers. Raises ValueError
    for a URI of another scheme, and OSError if the region of a bucket cannot be found.
    """
    split_uri = urlsplit(arrow)
    if split_uri.scheme == "file":
        return Store(LocalStore(unquote(split_uri.path)))
    config: dict[str, Any]
    if split_uri.scheme == "s3":
        config = {name.lower().removeprefix("aws_"): value for name, value in options.items()}
        if not config.keys() >= _KEYS:
            config = {**_s3_login(split_uri.username, split_uri.password), **config}
    elif split_uri.scheme in ("gs", "gcs"):
        config = {"skip_signature": True} if split_uri.username == "anonymous" else {}
        config |= options
    else:
        raise ValueError(f"no installed client reaches a bucket by {split_uri.scheme}: URIs")
    return _connected(arrow, json.dumps(config, sort_keys=True))


@lru_cache(maxsize=64)
def _connected(arrow: str, options: str) -> Store:
    """Return a store, and keep it with its connections for later calls with equal arguments."""
    split_uri = urlsplit(arrow)
    query = {name: values[-1] for name, values in parse_qs(split_uri.query).items()}
    endpoint = query.get("endpoint_override", "")
    url = f"{query.get('scheme', 'https')}://{endpoint}" if endpoint else ""
    shared: Any = {
        "prefix": unquote(split_uri.path).strip("/") or None,
        "client_options": {**_CLIENT, "allow_http": url.startswith("http:")},
        "retry_config": _RETRIES,
    }
    config: Any
    if split_uri.scheme == "s3":
        config = {"endpoint": url} if url else {}
        # Not every store deletes several objects by one request, and no request here does.
        config |= {"region": _region(arrow, query), "disable_bulk_delete": True}
        config |= json.loads(options)
        if config.keys() >= _KEYS:
            shared["credential_provider"] = _login_provider(config)
        return Store(S3Store(split_uri.hostname, config=config, **shared))
    config = {"base_url": url} if url else {}
    config |= json.loads(options)
    return Store(GCSStore(split_uri.hostname, config=config, **shared))


@contextmanager
def translated_errors(uri: str) -> Iterator[None]:
    """Raise TryAgainError if a store does not answer, or refuses for now.

    Raises StorageError if the store will always refuse: no login or permission, no such bucket or
    option. pyarrow reports both by an OSError without a number, obstore by errors of its own, and a
    missing bucket like a missing object.
    """
    try:
        yield
    except (BaseError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        kind = StorageError if _is_lasting(error) else TryAgainError
        raise kind(f"{uri}: {first_line(error)}") from error


def _is_lasting(error: Exception) -> bool:
    """Return whether a store would answer the same tomorrow, unless a person acts."""
    if isinstance(error, _LASTING) or _ELSEWHERE in str(error):
        return True
    return _status(error) in _LASTING_STATUSES and _TOO_SLOW not in str(error)


def _may_refuse_condition(error: BaseError) -> bool:
    return isinstance(error, NotSupportedError) or _status(error) in _UNKNOWN_CONDITION


def _status(error: Exception) -> int | None:
    """Return the status of the answer that obstore reports in an error; None if there is none."""
    match = _STATUS.search(str(error))
    return int(match[1]) if match else None


def first_line(error: Exception) -> str:
    """Return the first line of an error: below it obstore shows internals."""
    return str(error).partition("\n")[0]


def _region(arrow: str, query: Mapping[str, str]) -> str:
    if "region" in query:
        return query["region"]
    from pyarrow.fs import FileSystem

    system, _ = FileSystem.from_uri(arrow)  # asks Amazon if the URI names no region
    region: str = system.region
    return region


def _login_provider(config: dict[str, Any]) -> Callable[[], Any]:
    """Remove the login from ``config``; return a function that gives the login to obstore.

    By itself obstore would add the session token of the environment to these keys.
    """
    login = {name: config.pop(name) for name in _KEYS}
    tokens = [config.pop(name, None) for name in ("session_token", "token")]
    return lambda: {**login, "token": tokens[0] or tokens[1], "expires_at": None}


def _s3_login(user: str | None, password: str | None) -> dict[str, str]:
    """Return the login at S3; an empty dict if obstore has to find the login."""
    if user and password:
        return {"access_key_id": unquote(user), "secret_access_key": unquote(password)}
    if "AWS_ACCESS_KEY_ID" in os.environ:
        return {}
    # obstore does not read the file that other tools share, and pyarrow does. There may be no file
    # and no home, and other tools accept a file with errors.
    named = os.environ.get("AWS_SHARED_CREDENTIALS_FILE")
    file = named or os.path.expanduser("~/.aws/credentials")
    profiles = ConfigParser(interpolation=None, strict=False)
    with suppress(OSError, UnicodeDecodeError, Error):
        profiles.read(file)
    profile = os.environ.get("AWS_PROFILE", "default")
    settings = profiles[profile] if profiles.has_section(profile) else {}
    names = {
        "access_key_id": "aws_access_key_id",
        "secret_access_key": "aws_secret_access_key",
        "session_token": "aws_session_token",
    }
    login = {option: settings[name] for option, name in names.items() if settings.get(name)}
    return login if login.keys() >= _KEYS else {}
