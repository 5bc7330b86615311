"""The catalogue that a reader of events alone can draw: edges between assets, and partitions.

It reads JSON and `slicewise`, as any program that receives the events can.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import slicewise

PARTITIONS = "slicewise_partitions"
ENDS = ("COMPLETE", "FAIL", "ABORT")
_Event = dict[str, Any]


def without_repeats(events: Iterable[_Event]) -> list[_Event]:
    """Return each event once: a worker that dies may leave an event to be sent again."""
    return list({(event["run"]["runId"], event["eventType"]): event for event in events}.values())


def steps_by_run(events: Iterable[_Event]) -> dict[str, Counter[str]]:
    """Count starts and ends by the id of the run."""
    steps: dict[str, Counter[str]] = defaultdict(Counter)
    for event in events:
        step = "end" if event["eventType"] in ENDS else event["eventType"]
        steps[event["run"]["runId"]][step] += 1
    return steps


@dataclass
class CatalogueOfEvents:
    """Edges (upstream, downstream, inlet, scheduling, mapping), and versions by asset and key."""

    edges: set[tuple[str, str, bool, bool, str]] = field(default_factory=set)
    versions: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    definitions: dict[str, slicewise.PartitionDefinition | None] = field(default_factory=dict)

    def read(self, events: Iterable[_Event]) -> None:
        """Read events in any order."""
        for event in events:
            outputs = [output["facets"][PARTITIONS] for output in event["outputs"]]
            for source in event["inputs"]:
                self._read_input(source["facets"][PARTITIONS], outputs)
            for output in outputs:
                self._read_output(output)

    def _read_input(self, source: dict[str, Any], outputs: list[dict[str, Any]]) -> None:
        mapping = json.dumps(source.get("mapping"), sort_keys=True)
        for output in outputs:
            self.edges.add(
                (
                    source["asset"],
                    output["asset"],
                    source["inlet"],
                    source["scheduling"],
                    mapping,
                )
            )

    def _read_output(self, output: dict[str, Any]) -> None:
        name, spec = output["asset"], output.get("definition")
        definition = slicewise.PartitionDefinition.from_json(spec) if spec else None
        self.definitions[name] = definition
        if not output["written"]:
            return
        keys = self._keys(output, definition)
        assert len(keys) == output["partitionCount"]
        for key in keys:
            version = output["versions"][key]
            self.versions[name][key] = max(version, self.versions[name].get(key, 0))

    def _keys(
        self, output: dict[str, Any], definition: slicewise.PartitionDefinition | None
    ) -> list[str]:
        if definition is None:
            return list(output["versions"])
        return [definition.text(key) for key in definition.select(output["selection"])]
