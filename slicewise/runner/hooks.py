"""The call of a producer's ``on_success`` or ``on_failure`` after a run.

A runner of its own makes the call, after any end of the run's runner, and opens no Spark session.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, NoReturn

from slicewise import spark
from slicewise.declaring.decorator import Asset, ProducedAsset
from slicewise.declaring.options import hooks_of
from slicewise.declaring.signatures import wanted_names
from slicewise.keys.partition_key import PartitionKey
from slicewise.loading.importing import importable
from slicewise.partitions.definition import PartitionDefinition
from slicewise.partitions.discovery import Discoveries
from slicewise.runner.channel import Channel
from slicewise.runner.function_arguments import outlets_of
from slicewise.runner.keys import read_partitions
from slicewise.runner.session import NoSparkError
from slicewise.runner.wire import Message
from slicewise.runner.work import bundle_root, find_producer
from slicewise.running.context import PartitionContext, RunContext, current_context
from slicewise.running.handles import AssetHandle
from slicewise.running.invoke import Producer
from slicewise.texts.tracebacks import one_line, user_traceback


class AfterRunError(RuntimeError):
    """A function that is called after a run has asked for an object that only the run
    itself has.
    """


def perform(request: Message, worker: Channel) -> int:
    """Call the function that the request names, and report the end; return the exit status."""
    root = bundle_root(request)
    # A definition file may create columns at the top level, as in the loader.
    spark.use_connect()
    with importable(root):
        try:
            producer, imported = find_producer(request, root)
            _call(_hook(producer, str(request["hook"])), _context(request, producer, imported))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            worker.say(
                {
                    "type": "failed",
                    "kind": "code",
                    "error": one_line(error),
                    "traceback": user_traceback(error, root),
                    "partition": None,
                }
            )
            return 1
    worker.say({"type": "finished"})
    return 0


def _hook(producer: Producer, option: str) -> Callable[..., Any]:
    hook = hooks_of(producer.options).get(option)
    if hook is None:
        raise LookupError(f"{producer.name} declares no {option}")
    return hook


def _call(hook: Callable[..., Any], context: RunContext) -> None:
    arguments = {"self": context["asset"], "context": context}
    with current_context(context):
        hook(**{name: arguments[name] for name in wanted_names(hook)})


def _context(request: Message, producer: Producer, imported: Mapping[str, Asset]) -> RunContext:
    definition, keys = read_partitions(request, imported.get(str(request["asset"])))
    handles = {
        str(outlet["name"]): _EndedAsset(
            str(outlet["name"]),
            uri=outlet["uri"],
            definition=definition,
            keys=keys,
            session=_no_session,
        )
        for outlet in outlets_of(request)
    }
    is_one = isinstance(producer, ProducedAsset)
    logical_time = request.get("logical_time")
    return RunContext(
        run_id=int(request["run_id"]),
        attempt=int(request["attempt"]),
        trigger=str(request["trigger"]),
        params=request.get("params") or {},
        asset=next(iter(handles.values())) if is_one else handles,
        logical_time=datetime.fromisoformat(logical_time) if logical_time else None,
        partition=_EndedPartitions(definition, keys, {}),
        discoveries=_NoDiscoveries(),
        more={"error": request.get("error")},
    )


def _no_session() -> NoReturn:
    raise NoSparkError("a function that is called after a run gets no Spark session")


class _EndedAsset(AssetHandle):
    """An asset whose run has ended: its name, its location and the run's partitions."""

    def write(self, frame: Any, *, partition: object = None) -> None:
        raise AfterRunError(
            f"the run has ended, and {self.name} can be written only before the end"
        )


class _EndedPartitions(PartitionContext):
    """The partitions of a run that has ended, without the upstream and the past partitions."""

    def iter_past_partitions(self) -> Iterator[Any]:
        raise AfterRunError(
            "the run has ended, and past partitions can be read only before the end"
        )

    def upstream(self, name: str) -> tuple[Any, ...]:
        raise AfterRunError(
            f"the run has ended, and its data of {name!r} can be read only before the end"
        )


class _NoDiscoveries(Discoveries):
    """Discoveries that add nothing to runtime partitions: the run that could add keys has ended."""

    def add(self, definition: PartitionDefinition | None, key: object) -> PartitionKey:
        raise AfterRunError(f"the run has ended, and no partition can be added to {definition!r}")
