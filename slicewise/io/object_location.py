"""Where an asset lies in an object store, in the words of Spark, of pyarrow and of the store."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from slicewise.io.base import StorageLocation
from slicewise.io.files import Files
from slicewise.io.formats import FORMATS, checked_format
from slicewise.io.object_store import Store, store_at
from slicewise.storage.layout import UNPARTITIONED

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_TRIAL = "_slicewise/trial"
# Schemes of pyarrow; a connection may replace a bucket by a folder of this host.
_STORES = frozenset({"s3", "gs", "gcs"})


class ObjectLocation(NamedTuple):
    """The folder of an asset in a bucket.

    `connector` is the scheme of Hadoop's connector, `arrow` the scheme of pyarrow.
    """

    location: StorageLocation
    connector: str
    arrow: str

    @property
    def root(self) -> str:
        """The folder inside the bucket."""
        return unquote(urlsplit(self.location.uri).path).strip("/")

    @property
    def bucket(self) -> str:
        """The name of the bucket."""
        return urlsplit(self.location.uri).netloc

    @property
    def arrow_uri(self) -> str:
        """The bucket, as pyarrow finds it."""
        return str(self.location.connection.get("arrow") or f"{self.arrow}://{self.bucket}")

    @property
    def is_remote(self) -> bool:
        """Whether the bucket is no folder of this host."""
        return urlsplit(self.arrow_uri).scheme in _STORES

    def files(self, folder: str, formats: Sequence[str]) -> Files:
        """Return the files of a folder below the asset's folder."""
        names = (self.root, folder)
        path = "/".join(name for name in names if name not in ("", UNPARTITIONED))
        form = FORMATS[checked_format(self.location.format, self.location.uri, formats)]
        url = f"{self.connector}://{self.bucket}/{path}"
        options = self.location.connection.get("hadoop") or {}
        return Files(self._system(), path, url, form, options, options)

    def store(self) -> Store:
        """Return the client of the store."""
        return store_at(self.arrow_uri, self.location.connection.get("obstore") or {})

    def refuse_unfit(self) -> None:
        """Raise UnfitStoreError for a store without the operations that publication needs."""
        folder = "/".join(filter(None, (self.root, _TRIAL)))
        self.store().refuse_unfit(folder, self.location.uri, name=self.arrow_uri)

    def _system(self) -> "FileSystem":
        from pyarrow.fs import FileSystem, SubTreeFileSystem

        system, base = FileSystem.from_uri(self.arrow_uri)
        return SubTreeFileSystem(base, system)
