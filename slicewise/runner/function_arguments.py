"""The arguments and the context of a run's function, made from the request of a worker."""

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from slicewise.declaring.decorator import Asset, ProducedAsset
from slicewise.io import Writer
from slicewise.partitions.discovery import Discoveries
from slicewise.runner.channel import Channel
from slicewise.runner.keys import read_partitions
from slicewise.runner.partition_records import present_keys, records_of
from slicewise.runner.past_partitions import past_keys
from slicewise.runner.session import LazySession
from slicewise.runner.wire import Message
from slicewise.running.context import PartitionContext, RunContext
from slicewise.running.handles import AssetHandle
from slicewise.running.invoke import Producer
from slicewise.running.written_handles import Outlets, OwnAssetHandle, WritableHandle

_MANY_FOLDERS = 5000

_logger = logging.getLogger("slicewise")


class FunctionArguments:
    """The handles and the context of one run. ``own`` is the function's argument ``self``."""

    def __init__(
        self,
        request: Message,
        producer: Producer,
        imported: Mapping[str, Asset],
        session: LazySession,
        worker: Channel,
    ) -> None:
        self._request, self._session, self._imported = request, session, imported
        self._write_mode = producer.options.write_mode
        self._outside = producer.options.outside
        self.discoveries = Discoveries()
        # All outlets have the same partitioning.
        self.definition, self.keys = read_partitions(request, imported.get(request["asset"]))
        _warn_of_many_folders(len(self.keys))
        self.outlets = [self._outlet(outlet, worker) for outlet in outlets_of(request)]
        self.own: WritableHandle | Outlets = (
            self.outlets[0] if isinstance(producer, ProducedAsset) else Outlets(self.outlets)
        )
        self.upstream = {
            name: self._upstream_handle(name, facts, imported.get(name), worker)
            for name, facts in request.get("upstreams", {}).items()
        }
        self.context = self._context(worker)

    def _outlet(self, outlet: Mapping[str, Any], worker: Channel) -> OwnAssetHandle:
        request = self._request
        run_id = int(request["run_id"])
        attempt = str(outlet.get("attempt_name") or request["attempt_name"])
        asset = self._imported.get(str(outlet["name"]))
        return OwnAssetHandle(
            str(outlet["name"]),
            uri=outlet["uri"],
            definition=self.definition,
            keys=self.keys,
            session=self._session.get,
            writer=Writer(run_id=run_id, attempt=attempt, fence=int(request["fence"])),
            present=present_keys(worker, str(outlet["name"])),
            records=records_of(worker, str(outlet["name"])),
            discoveries=self.discoveries,
            format=None if asset is None else asset.format,
            columns=None if asset is None else asset.columns,
            write_mode=self._write_mode,
            outside=self._outside,
            connection=outlet.get("connection"),
        )

    def _upstream_handle(
        self, name: str, facts: Message, asset: Asset | None, worker: Channel
    ) -> AssetHandle:
        definition, keys = read_partitions(facts, asset)
        return AssetHandle(
            name,
            uri=facts["uri"],
            definition=definition,
            keys=keys,
            session=self._session.get,
            missing=[str(text) for text in facts.get("missing", [])],
            records=records_of(worker, name) if facts.get("is_recorded") else None,
            nonexistent=facts.get("nonexistent"),
            excluded=int(facts.get("excluded", 0)),
            format=facts.get("format"),
            columns=facts.get("columns"),
            connection=facts.get("connection"),
        )

    def _context(self, worker: Channel) -> RunContext:
        request = self._request
        logical_time = request.get("logical_time")
        past = past_keys(worker, self.definition)
        return RunContext(
            run_id=int(request["run_id"]),
            attempt=int(request["attempt"]),
            trigger=str(request["trigger"]),
            params=request.get("params") or {},
            asset=self.own,
            logical_time=datetime.fromisoformat(logical_time) if logical_time else None,
            partition=PartitionContext(self.definition, self.keys, self.upstream, past),
            discoveries=self.discoveries,
        )


def outlets_of(request: Message) -> list[Mapping[str, Any]]:
    """Return the outlets of a run, each with a name and a URI. A run of one
    asset may give both itself.
    """
    return request.get("outlets") or [{"name": request["asset"], "uri": request["uri"]}]


def _warn_of_many_folders(count: int) -> None:
    if count > _MANY_FOLDERS:
        _logger.warning(
            "this run writes %s partitions: a file system makes about 130 folders a second", count
        )
