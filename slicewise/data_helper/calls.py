"""The calls of a storage that the helper performs, as messages, and the checks of the answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from slicewise.data_helper.error_json import error_to_json
from slicewise.io.base import Measured, Storage, StorageLocation, Writer, storage_at
from slicewise.runner.messages import LARGEST_COUNT
from slicewise.runner.wire import Message

_LONGEST_REASON = 1000
Arguments = Mapping[str, Any]


class UnfitAnswerError(ValueError):
    """The helper's answer does not fit the request."""


@dataclass(frozen=True)
class Call:
    """One method of a storage: how the helper performs the call, and how its result is read."""

    perform: Callable[[Storage, Arguments], Any]
    """Calls the storage with arguments in JSON; returns the result as JSON."""
    read: Callable[[Any, Arguments], Any]
    """Reads the JSON that answers these arguments; returns the result. Raises UnfitAnswerError."""


def request_of(call: str, location: StorageLocation, arguments: Arguments) -> Message:
    """Return the message that requests a call."""
    return {"call": call, "location": asdict(location), "arguments": arguments}


def answer_to(request: Message) -> Message:
    """Perform the call of a request; return its result, or its error."""
    try:
        storage = storage_at(StorageLocation(**request["location"]))
        return {"result": CALLS[request["call"]].perform(storage, request["arguments"])}
    except Exception as error:
        return refusal(error)


def refusal(error: Exception) -> Message:
    """Return the answer that raises an error in the process with the request."""
    return {"error": error_to_json(error)}


def writer_to_json(writer: Writer) -> Message:
    """Return an attempt as JSON."""
    return {**asdict(writer), "earlier": list(writer.earlier)}


def _writer(arguments: Arguments) -> Writer:
    return Writer(**arguments["writer"])


def _publish(storage: Storage, arguments: Arguments) -> Any:
    facts = storage.publish(arguments["staging"], arguments["partitions"], _writer(arguments))
    return {path: dict(path_facts) for path, path_facts in facts.items()}


def _measure(storage: Storage, arguments: Arguments) -> Any:
    sizes = storage.measure(arguments["paths"])
    if sizes is None:
        return None
    return {path: size and [size.bytes, size.rows, size.files] for path, size in sizes.items()}


def _remove(storage: Storage, arguments: Arguments) -> Any:
    writers = {
        path: [Writer(**writer) for writer in path_writers]
        for path, path_writers in arguments["writers"].items()
    }
    return dict(storage.remove(writers))


def _nothing(result: Any, arguments: Arguments) -> None:
    _refuse_unless(result is None)


def _truth(result: Any, arguments: Arguments) -> bool:
    _refuse_unless(isinstance(result, bool))
    return bool(result)


def _facts(result: Any, arguments: Arguments) -> Mapping[str, Mapping[str, Any]]:
    facts = _by_path(result, [str(partition["path"]) for partition in arguments["partitions"]])
    _refuse_unless(all(isinstance(path_facts, dict) for path_facts in facts.values()))
    return facts


def _paths(result: Any, arguments: Arguments) -> list[str]:
    _refuse_unless(isinstance(result, list) and all(isinstance(path, str) for path in result))
    _refuse_unless(set(arguments["paths"]).issuperset(result))
    return list(result)


def _sizes(result: Any, arguments: Arguments) -> Mapping[str, Measured | None] | None:
    if result is None:
        return None
    sizes = _by_path(result, arguments["paths"])
    _refuse_unless(len(sizes) == len(set(arguments["paths"])))
    return {path: None if size is None else _measured(size) for path, size in sizes.items()}


def _measured(size: Any) -> Measured:
    _refuse_unless(isinstance(size, list) and len(size) == 3 and all(map(_is_count, size)))
    return Measured(bytes=size[0], rows=size[1], files=size[2])


def _reasons(result: Any, arguments: Arguments) -> Mapping[str, str]:
    reasons = _by_path(result, arguments["writers"])
    _refuse_unless(all(isinstance(reason, str) for reason in reasons.values()))
    return {path: reason[:_LONGEST_REASON] for path, reason in reasons.items()}


def _by_path(result: Any, paths: Sequence[str] | Mapping[str, Any]) -> dict[str, Any]:
    """Return facts by path. Raises UnfitAnswerError for a path outside the request."""
    _refuse_unless(isinstance(result, dict) and set(paths).issuperset(result))
    return dict(result)


def _is_count(value: object) -> bool:
    return value is None or (isinstance(value, int) and 0 <= value <= LARGEST_COUNT)


def _refuse_unless(is_fit: bool) -> None:
    if not is_fit:
        raise UnfitAnswerError("the answer has an unknown form")


CALLS: Mapping[str, Call] = {
    "refuse_unfit_location": Call(
        lambda storage, arguments: storage.refuse_unfit_location(), _nothing
    ),
    "check": Call(
        lambda storage, arguments: storage.check(
            arguments["staging"], arguments["partitions"], _writer(arguments)
        ),
        _nothing,
    ),
    "publish": Call(_publish, _facts),
    "published": Call(
        lambda storage, arguments: storage.published(arguments["paths"], _writer(arguments)), _paths
    ),
    "discard": Call(lambda storage, arguments: storage.discard(_writer(arguments)), _nothing),
    "has_remains": Call(lambda storage, arguments: storage.has_remains(_writer(arguments)), _truth),
    "is_reachable": Call(lambda storage, arguments: storage.is_reachable(), _truth),
    "measure": Call(_measure, _sizes),
    "remove": Call(_remove, _reasons),
}
