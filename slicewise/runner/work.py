"""What a runner does for one run: bundle, definition, function, data, report."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from slicewise import spark
from slicewise.assets import ProducedAsset
from slicewise.bundles import unpack
from slicewise.context import PartitionContext, RunContext
from slicewise.definitions import PartitionDefinition
from slicewise.handles import AssetHandle, OwnAssetHandle
from slicewise.invoke import invoke
from slicewise.keys import WHOLE, PartitionKey
from slicewise.loading import import_file, importable
from slicewise.registry import Registry, collecting
from slicewise.runner.wire import Message
from slicewise.storage import marker_name, staging_path
from slicewise.tracebacks import one_line, user_traceback

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_PARTITIONS_PER_MESSAGE = 1000
_MANY_FOLDERS = 5000

_logger = logging.getLogger("slicewise")

Say = Callable[[Message], None]


class NoSparkError(RuntimeError):
    """Spark was asked for in a run that has none."""


def perform(request: Message, say: Say) -> int:
    """Makes the partitions of one run, and says how it went; the exit status.

    Whatever goes wrong before the definition is imported is the platform's failure.
    """
    root = _unpacked(request)
    session = _LazySession(request, say)
    if request.get("spark"):
        spark.use_connect()
    try:
        with importable(root):
            own = _make(request, root, session)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        failure = _failure(error, root, request)
        say(failure)
        if failure["kind"] == "code":  # a server that is gone would be waited for
            session.close()
        return 1
    _report(own, say)
    session.close()
    return 0


def _unpacked(request: Message) -> Path:
    """The folder of the bundle version, unpacked once for all runs that use it."""
    bundle = request["bundle"]
    folder = Path(request["cache"]) / "bundles" / str(bundle["digest"])
    if not folder.exists():
        unpack(Path(bundle["archive"]).read_bytes(), folder)
    return folder.resolve()


def _make(request: Message, root: Path, session: "_LazySession") -> OwnAssetHandle:
    asset = _imported(root, str(request["file"]), str(request["asset"]))
    session.conf = dict(asset.options.spark_conf)
    own = _own_handle(request, session)
    upstream = {
        name: _upstream_handle(name, facts, session)
        for name, facts in request.get("upstreams", {}).items()
    }
    context = _context(request, own, upstream)
    returned = invoke(asset, context, own, upstream, session.get)
    if returned is not None:
        own.write(returned)
    elif own.staged is None and own.can_write:
        raise ValueError(
            f"the function of {own.name} returned nothing and wrote nothing; return a DataFrame,"
            " or call self.write"
        )
    return own


def _imported(root: Path, file: str, name: str) -> ProducedAsset:
    with collecting(Registry(root)) as registry:
        import_file(root, file)
    asset = registry.assets.get(name)
    if not isinstance(asset, ProducedAsset):
        raise LookupError(f"{file} declares no asset {name!r} with a function")
    return asset


def _own_handle(request: Message, session: "_LazySession") -> OwnAssetHandle:
    definition, keys = _partitions(request["partition"], request["partitions"])
    run_id, attempt = int(request["run_id"]), str(request["attempt_name"])
    if len(keys) > _MANY_FOLDERS:
        _logger.warning(
            "%s partitions in one run: a file system makes about 130 folders a second", len(keys)
        )
    own = OwnAssetHandle(
        str(request["asset"]),
        uri=request["uri"],
        definition=definition,
        keys=keys,
        session=session.get,
        marker=marker_name(run_id, attempt),
    )
    if own.canonical_uri is not None and own.canonical_uri.startswith("file:"):
        own.stage_in(
            staging_path(
                own.path(),
                run_id,
                attempt,
                str(request["token"]),
                partitioned=definition is not None,
            )
        )
    return own


def _upstream_handle(name: str, facts: Message, session: "_LazySession") -> AssetHandle:
    definition, keys = _partitions(facts["partition"], facts["partitions"])
    missing = [str(text) for text in facts.get("missing", [])]
    return AssetHandle(
        name,
        uri=facts["uri"],
        definition=definition,
        keys=keys,
        session=session.get,
        missing=missing,
    )


def _partitions(
    spec: Message | None, texts: Sequence[str]
) -> tuple[PartitionDefinition | None, list[PartitionKey]]:
    if spec is None:
        return None, [WHOLE for _ in texts]
    definition = PartitionDefinition.from_json(spec)
    return definition, [definition.parse(text) for text in texts]


def _context(request: Message, own: OwnAssetHandle, upstream: dict[str, AssetHandle]) -> RunContext:
    logical_time = request.get("logical_time")
    return RunContext(
        run_id=int(request["run_id"]),
        attempt=int(request["attempt"]),
        trigger=str(request["trigger"]),
        params=request.get("params") or {},
        asset=own,
        logical_time=datetime.fromisoformat(logical_time) if logical_time else None,
        partition=PartitionContext(own.definition, own.keys, upstream),
    )


def _report(own: OwnAssetHandle, say: Say) -> None:
    if own.staged is not None:
        staged = [partition.to_json() for partition in own.staged]
        for start in range(0, len(staged), _PARTITIONS_PER_MESSAGE):
            say(
                {
                    "type": "staged",
                    "root": str(own.path()),
                    "staging": str(own.staging),
                    "partitions": staged[start : start + _PARTITIONS_PER_MESSAGE],
                }
            )
    say({"type": "finished"})


def _failure(error: BaseException, root: Path, request: Message) -> Message:
    keys = request["partitions"]
    return {
        "type": "failed",
        "kind": "platform" if spark.is_platform_failure(error) else "code",
        "error": one_line(error),
        "traceback": user_traceback(error, root),
        "partition": keys[0] if len(keys) == 1 and request["partition"] is not None else None,
    }


class _LazySession:
    """The run's Spark session, opened when it is first asked for."""

    def __init__(self, request: Message, say: Say) -> None:
        self._facts = request.get("spark")
        self._say = say
        self._session: SparkSession | None = None
        self.conf: dict[str, str] = {}

    def get(self) -> "SparkSession":
        """Raises NoSparkError when the run was given no server."""
        if self._session is None:
            if self._facts is None:
                raise NoSparkError("this run was given no Spark server")
            # Said before: whoever ends this run knows then that there may be a session to end.
            self._say({"type": "spark", "application_id": None, "ui": None})
            self._session = spark.open_session(
                str(self._facts["remote"]),
                str(self._facts["session_id"]),
                tag=self._facts.get("tag"),
                conf=self.conf,
            )
            application = spark.application_id(self._session)
            self._say({"type": "spark", "application_id": application, "ui": None})
        return self._session

    def close(self) -> None:
        """Gives the session's memory on the server back."""
        if self._session is not None:
            spark.close_session(self._session)
