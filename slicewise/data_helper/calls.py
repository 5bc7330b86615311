"""The calls of a storage that the helper takes, as messages, and what may be answered to each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from slicewise.data_helper.errors import error_to_json
from slicewise.io.base import Measured, Place, Storage, Writer, storage_at
from slicewise.runner.messages import LARGEST_COUNT
from slicewise.runner.wire import Message

_LONGEST_REASON = 1000
Arguments = Mapping[str, Any]


class UnfitAnswerError(ValueError):
    """The helper has answered what is no answer to the request."""


@dataclass(frozen=True)
class Call:
    """One method of a storage: how the helper performs it, and how its result is read."""

    perform: Callable[[Storage, Arguments], Any]
    """Its result as JSON, for arguments in JSON."""
    read: Callable[[Any, Arguments], Any]
    """The result of JSON that answers these arguments. Raises UnfitAnswerError."""


def request_of(call: str, place: Place, arguments: Arguments) -> Message:
    """Return the message that asks for a call."""
    return {"call": call, "place": asdict(place), "arguments": arguments}


def answer_to(request: Message) -> Message:
    """Perform the call of a request; return its result, or its error."""
    try:
        storage = storage_at(Place(**request["place"]))
        return {"result": CALLS[request["call"]].perform(storage, request["arguments"])}
    except Exception as error:
        return refusal(error)


def refusal(error: Exception) -> Message:
    """Return the answer that raises an error where it was asked."""
    return {"error": error_to_json(error)}


def writer_to_json(writer: Writer) -> Message:
    """Return an attempt as JSON."""
    return {**asdict(writer), "earlier": list(writer.earlier)}


def _writer(arguments: Arguments) -> Writer:
    return Writer(**arguments["writer"])


def _publish(storage: Storage, of: Arguments) -> Any:
    facts = storage.publish(of["staging"], of["partitions"], _writer(of))
    return {path: dict(said) for path, said in facts.items()}


def _measure(storage: Storage, of: Arguments) -> Any:
    sizes = storage.measure(of["paths"])
    if sizes is None:
        return None
    return {path: size and [size.bytes, size.rows] for path, size in sizes.items()}


def _remove(storage: Storage, of: Arguments) -> Any:
    writers = {path: [Writer(**one) for one in own] for path, own in of["writers"].items()}
    return dict(storage.remove(writers))


def _nothing(result: Any, of: Arguments) -> None:
    _refuse_unless(result is None)


def _truth(result: Any, of: Arguments) -> bool:
    _refuse_unless(isinstance(result, bool))
    return bool(result)


def _facts(result: Any, of: Arguments) -> Mapping[str, Mapping[str, Any]]:
    facts = _by_path(result, [str(partition["path"]) for partition in of["partitions"]])
    _refuse_unless(all(isinstance(said, dict) for said in facts.values()))
    return facts


def _paths(result: Any, of: Arguments) -> list[str]:
    _refuse_unless(isinstance(result, list) and all(isinstance(path, str) for path in result))
    _refuse_unless(set(of["paths"]).issuperset(result))
    return list(result)


def _sizes(result: Any, of: Arguments) -> Mapping[str, Measured | None] | None:
    if result is None:
        return None
    sizes = _by_path(result, of["paths"])
    _refuse_unless(len(sizes) == len(set(of["paths"])))
    return {path: None if size is None else _measured(size) for path, size in sizes.items()}


def _measured(size: Any) -> Measured:
    _refuse_unless(isinstance(size, list) and len(size) == 2 and all(map(_is_count, size)))
    return Measured(bytes=size[0], rows=size[1])


def _reasons(result: Any, of: Arguments) -> Mapping[str, str]:
    reasons = _by_path(result, of["writers"])
    _refuse_unless(all(isinstance(why, str) for why in reasons.values()))
    return {path: why[:_LONGEST_REASON] for path, why in reasons.items()}


def _by_path(result: Any, paths: Sequence[str] | Mapping[str, Any]) -> dict[str, Any]:
    """Return facts by path, of no other paths than those that were asked for."""
    _refuse_unless(isinstance(result, dict) and set(paths).issuperset(result))
    return dict(result)


def _is_count(value: object) -> bool:
    return value is None or (isinstance(value, int) and 0 <= value <= LARGEST_COUNT)


def _refuse_unless(is_fit: bool) -> None:
    if not is_fit:
        raise UnfitAnswerError("an answer of another form")


CALLS: Mapping[str, Call] = {
    "refuse_place": Call(lambda storage, of: storage.refuse_place(), _nothing),
    "check": Call(
        lambda storage, of: storage.check(of["staging"], of["partitions"], _writer(of)), _nothing
    ),
    "publish": Call(_publish, _facts),
    "published": Call(lambda storage, of: storage.published(of["paths"], _writer(of)), _paths),
    "discard": Call(lambda storage, of: storage.discard(_writer(of)), _nothing),
    "is_reachable": Call(lambda storage, of: storage.is_reachable(), _truth),
    "measure": Call(_measure, _sizes),
    "remove": Call(_remove, _reasons),
}
