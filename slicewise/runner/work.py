"""What a runner does for one run: bundle, definition, function, data, report."""

from collections.abc import Mapping
from pathlib import Path

from slicewise import spark
from slicewise.assets import Asset
from slicewise.invoke import Producer, invoke, keep
from slicewise.io.recorded import LostDataError
from slicewise.key_json import key_to_json
from slicewise.loading import import_file, importable
from slicewise.platform_failures import is_platform_failure
from slicewise.registry import Registry, collecting
from slicewise.runner.channel import Channel
from slicewise.runner.given import Given
from slicewise.runner.parts import Unmade, make
from slicewise.runner.run_limits import RunLimits
from slicewise.runner.session import LazySession
from slicewise.runner.validating import DatabaseClock, Validating
from slicewise.runner.wire import Message
from slicewise.tracebacks import one_line, user_traceback
from slicewise.validations import ValidationFailedError

# A key text has up to 1,000 characters, a folder some more, and a message at most a megabyte.
_PARTITIONS_PER_MESSAGE = 250
_ERROR_LENGTH = 950


def perform(request: Message, worker: Channel) -> int:
    """Makes the partitions of one run, and says how it went; the exit status.

    Whatever goes wrong before the definition is imported is the platform's failure.
    """
    root = bundle_root(request)
    session = LazySession(request, worker)
    try:
        with importable(root):
            session.prepare()
            given, unmade = _make(request, root, session, worker)
            _report(given, unmade, worker)
            if unmade.error is not None:
                raise unmade.error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        failure = _failure(error, root, request)
        worker.say(failure)
        if failure["kind"] != "platform":  # a server that is gone would be waited for
            session.close()
        return 1
    worker.say({"type": "finished"})
    session.close()
    return 0


def bundle_root(request: Message) -> Path:
    """The folder of the bundle version, as the worker has unpacked it."""
    return Path(request["root"]).resolve()


def find_producer(request: Message, root: Path) -> tuple[Producer, Mapping[str, Asset]]:
    """Imports the definition file: whose function the run calls, and all assets that it declares.

    Raises LookupError, and whatever the file raises.
    """
    file, name = str(request["file"]), str(request["asset"])
    with collecting(Registry(root)) as registry:
        import_file(root, file)
        # What an asset that something else writes says of its data stands in a file of its own.
        for facts in request.get("upstreams", {}).values():
            if facts.get("declared_in"):
                import_file(root, str(facts["declared_in"]))
    asset = registry.assets.get(name)
    producer: Producer | None = None if asset is None else asset.made_by
    if producer is None:
        raise LookupError(f"{file} declares no asset {name!r} with a function")
    return producer, registry.assets


def _make(
    request: Message, root: Path, session: LazySession, worker: Channel
) -> tuple[Given, Unmade]:
    producer, imported = find_producer(request, root)
    session.conf = producer.options.spark_conf
    given = Given(request, producer, imported, session, worker)
    validating = Validating(producer, imported, worker, DatabaseClock(request["clock"]))
    validating.inlets(given, request)

    def write() -> None:
        returned = invoke(producer, given.context, given.own, given.upstream, session.get)
        keep(producer, given.own, returned)

    return given, make(producer, given, validating, write)


def _report(given: Given, unmade: Unmade, worker: Channel) -> None:
    """Says what is staged, left unmade, and found; how it ended is said last, after all of it."""
    unmade.tell(worker)
    for own in given.outlets:
        pieces = [piece for piece in own.staged if piece.key not in unmade.reasons]
        staged = [piece.to_json() for piece in pieces]
        for start in range(0, len(staged), _PARTITIONS_PER_MESSAGE):
            worker.say(
                {
                    "type": "staged",
                    "asset": own.name,
                    "root": str(own.canonical_uri),
                    "staging": own.staging,
                    "partitions": staged[start : start + _PARTITIONS_PER_MESSAGE],
                }
            )
    for name, keys in given.discoveries.sets().items():
        found = [key_to_json(key) for key in keys]
        for start in range(0, len(found), _PARTITIONS_PER_MESSAGE):
            page = found[start : start + _PARTITIONS_PER_MESSAGE]
            worker.say({"type": "discovered", "set": name, "keys": page})


def _failure(error: BaseException, root: Path, request: Message) -> Message:
    keys = request["partitions"]
    by_data = isinstance(error, ValidationFailedError)  # whose sentence says it all
    said = _shortened(error) if by_data else one_line(error)
    limits = RunLimits.of(request.get("limits"))
    advice = (spark.engine_advice(error), spark.write_cause(error), limits.advice(error))
    for more in filter(None, advice):
        error.add_note(more)
        said = f"{said} {more}"
    return {
        "type": "failed",
        "kind": _kind(error),
        "error": said,
        "traceback": "" if by_data else user_traceback(error, root),
        "partition": keys[0] if len(keys) == 1 and request["partition"] is not None else None,
    }


def _kind(error: BaseException) -> str:
    """Return whose failure it is: the data's, the platform's or the code's."""
    if isinstance(error, LostDataError):
        return "data"
    return "platform" if is_platform_failure(error) else "code"


def _shortened(error: BaseException) -> str:
    """The first validation that failed, and how many more."""
    first, *more = str(error).splitlines()
    return first[:_ERROR_LENGTH] + (f" (And {len(more)} more.)" if more else "")
