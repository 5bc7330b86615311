"""The work of a runner for one run: bundle, definition, function, data, report."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from slicewise.declaring.active_registry import collecting
from slicewise.declaring.decorator import Asset
from slicewise.declaring.registry import Registry
from slicewise.io.recorded import LostDataError
from slicewise.keys.key_json import key_to_json
from slicewise.loading.importing import import_file, importable
from slicewise.platform_failures import is_platform_failure, is_spark_lost
from slicewise.runner.around import StepsOfRun
from slicewise.runner.channel import Channel
from slicewise.runner.function_arguments import FunctionArguments
from slicewise.runner.partial_publish import UnpublishedPartitions, write_and_validate
from slicewise.runner.run_limits import RunLimits
from slicewise.runner.session import LazySession
from slicewise.runner.stop_signal import end_stopped
from slicewise.runner.validating import DatabaseClock, RunValidations
from slicewise.runner.wire import Message
from slicewise.running.invoke import Producer
from slicewise.running.steps import RunStopped
from slicewise.texts.spark_advice import engine_advice, write_cause
from slicewise.texts.tracebacks import one_line, user_traceback
from slicewise.validations import ValidationFailedError

# A key text has up to 1,000 characters, a folder some more, and a message at most a megabyte.
_PARTITIONS_PER_MESSAGE = 250
_ERROR_LENGTH = 950
_SPARK_LOST = "Spark was lost during the run; such a run is tried again."


def perform(request: Message, worker: Channel) -> int:
    """Materialize the partitions of one run, and report the end; return the exit status.

    Any failure before the definition file is imported is the platform's.
    """
    root = bundle_root(request)
    session = LazySession(request, worker)
    steps = StepsOfRun(worker, session, root)
    failure: Message | None = None
    with ExitStack() as code:  # the tear-down may import modules of the bundle
        error: BaseException | None = None
        try:
            code.enter_context(importable(root))
            session.prepare()
            _make(request, root, session, worker, steps)
        except BaseException as raised:
            if isinstance(raised, KeyboardInterrupt) and not isinstance(raised, RunStopped):
                steps.tear_down(raised)
                raise
            error = raised
            failure = _failure(error, root, request)
        is_stopped = steps.is_stopped
        if not is_stopped:
            # Told first: nothing that happens in the tear-down changes the end of the run.
            worker.say(failure or {"type": "finished"})
        steps.tear_down(error)
    if is_stopped:
        end_stopped()
    if failure is None or failure["kind"] != "platform":  # the session would wait for a lost server
        session.close()
    return 0 if failure is None else 1


def bundle_root(request: Message) -> Path:
    """Return the folder of the bundle version, as the worker has unpacked it."""
    return Path(request["root"]).resolve()


def find_producer(request: Message, root: Path) -> tuple[Producer, Mapping[str, Asset]]:
    """Import the definition file; return (producer, assets): the producer whose function the run
    calls, and all assets of the file.

    Raises LookupError, and any error that the file raises.
    """
    file, name = str(request["file"]), str(request["asset"])
    with collecting(Registry(root)) as registry:
        import_file(root, file)
        # An asset that another program writes may be declared, with facts on its data, elsewhere.
        for facts in request.get("upstreams", {}).values():
            if facts.get("declared_in"):
                import_file(root, str(facts["declared_in"]))
    asset = registry.assets.get(name)
    producer: Producer | None = None if asset is None else asset.made_by
    if producer is None:
        raise LookupError(f"{file} declares no asset {name!r} with a function")
    return producer, registry.assets


def _make(
    request: Message, root: Path, session: LazySession, worker: Channel, steps: StepsOfRun
) -> None:
    """Call the function, validate its data and report the output. Raises the error of the run."""
    producer, imported = find_producer(request, root)
    session.conf = producer.options.spark_conf
    arguments = FunctionArguments(request, producer, imported, session, worker)
    validating = RunValidations(producer, imported, worker, DatabaseClock(request["clock"]))
    validating.inlets(arguments, request)

    with steps.around(producer, arguments) as run_steps:
        unmade = write_and_validate(
            producer, arguments, validating, lambda: run_steps.make(arguments.upstream)
        )
        _report(arguments, unmade, worker)
    if unmade.error is not None:
        raise unmade.error


def _report(arguments: FunctionArguments, unmade: UnpublishedPartitions, worker: Channel) -> None:
    """Report staged, unmaterialized and discovered partitions; the end of the
    run comes after all of them.
    """
    unmade.report(worker)
    for outlet in arguments.outlets:
        partitions = [
            partition for partition in outlet.staged if partition.key not in unmade.reasons
        ]
        staged = [partition.to_json() for partition in partitions]
        for start in range(0, len(staged), _PARTITIONS_PER_MESSAGE):
            worker.say(
                {
                    "type": "staged",
                    "asset": outlet.name,
                    "root": str(outlet.canonical_uri),
                    "staging": outlet.staging,
                    "partitions": staged[start : start + _PARTITIONS_PER_MESSAGE],
                }
            )
    for name, keys in arguments.discoveries.sets().items():
        keys_json = [key_to_json(key) for key in keys]
        for start in range(0, len(keys_json), _PARTITIONS_PER_MESSAGE):
            page = keys_json[start : start + _PARTITIONS_PER_MESSAGE]
            worker.say({"type": "discovered", "set": name, "keys": page})


def _failure(error: BaseException, root: Path, request: Message) -> Message:
    keys = request["partitions"]
    by_data = isinstance(error, ValidationFailedError)  # whose sentence is complete
    sentence = _shortened(error) if by_data else one_line(error)
    limits = RunLimits.of(request.get("limits"))
    advice = (engine_advice(error), write_cause(error), limits.advice(error))
    for note in filter(None, advice):
        error.add_note(note)
        sentence = f"{sentence} {note}"
    if is_spark_lost(error):
        sentence = f"{_SPARK_LOST} {sentence}"[:_ERROR_LENGTH]
    return {
        "type": "failed",
        "kind": _kind(error),
        "error": sentence,
        "traceback": "" if by_data else user_traceback(error, root),
        "partition": keys[0] if len(keys) == 1 and request["partition"] is not None else None,
    }


def _kind(error: BaseException) -> str:
    """Return the origin of a failure: the data, the platform or the code."""
    if isinstance(error, LostDataError):
        return "data"
    return "platform" if is_platform_failure(error) else "code"


def _shortened(error: BaseException) -> str:
    """Return the first validation that failed, and the number of the others."""
    first, *more = str(error).splitlines()
    return first[:_ERROR_LENGTH] + (f" (And {len(more)} more.)" if more else "")
