"""The JSON of declarations: keys and defaults, for the loader that writes and servers that read.

A field has the name of its key, and JSON without the key, or with null, means the field's default:
servers keep JSON from before an option existed. A few statements of servers read keys in the
database: ``engine``, ``priority``, ``max_active_runs``, ``write_mode`` and ``references``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from slicewise.declaring.options import Engine, OnPartial, Outside, Pending, RunOptions, Strategy
from slicewise.declaring.schedules import fresh_names, schedule_names
from slicewise.io.base import WriteMode

Json = dict[str, Any]
# No key for the default value, as in JSON from before the option: a new key changes the digest.
_LEFT_OUT = ("alerts", "freshness", "memory", "setup", "teardown")
_OUTLET_LEFT_OUT = ("freshness",)


@dataclass(frozen=True, kw_only=True)
class OutletSpec:
    """An asset's own facts; an outlet without a fact has the fact of the function."""

    name: str
    uri: str | None = None
    canonical_uri: str | None = None
    kind: str | None = None
    format: str | None = None
    columns: Sequence[Json] | None = None
    partition: Json | None = None
    outlet_validations: Sequence[Json] = ()
    warnings: Sequence[str] = ()
    description: str | None = None
    owners: Sequence[str] = ()
    tags: Sequence[str] = ()
    group: str | None = None
    freshness: Json | None = None

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> Self:
        """Read the facts. Raises TypeError if there is no name."""
        return cls(**_known_values(cls, json))

    def to_json(self) -> Json:
        """Return the facts as JSON."""
        return _json_of(self, _OUTLET_LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class ExternalSpec(OutletSpec):
    """A declared asset that another program writes."""

    file: str
    line: int

    @property
    def outlet_names(self) -> list[str]:
        """The asset's name, as a producer has the names of its outlets."""
        return [self.name]


@dataclass(frozen=True, kw_only=True)
class ProducerSpec:
    """A declared function with options, and with times, definitions and schedules as JSON.

    ``references`` are the upstream assets that no file of the bundle declares. The loader's report
    of a function has a key ``source`` beside the keys of this value.
    """

    name: str = ""
    file: str = ""
    line: int = 0
    multi: bool = False
    outlets: tuple[OutletSpec, ...]
    description: str = ""
    inlets: Sequence[str] = ()
    mappings: Mapping[str, Json] = field(default_factory=dict)
    inlet_validations: Mapping[str, Sequence[Json]] = field(default_factory=dict)
    references: Sequence[str] = ()
    partition: Json | None = None
    schedule: Json | None = None
    timezone: str | None = None
    start_date: str | None = None
    end_date: str | None = None
    strategy: Strategy
    refresh: int = RunOptions.refresh
    pending: Pending = RunOptions.pending
    write_mode: WriteMode = RunOptions.write_mode
    group: str | None = None
    owners: Sequence[str] = ()
    tags: Sequence[str] = ()
    alerts: Sequence[Json] = ()
    retries: int = RunOptions.retries
    retry_delay: float = 0.0
    timeout: float | None = None
    memory: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    priority: int = RunOptions.priority
    max_active_runs: int | None = None
    depends_on_past: bool = False
    engine: Engine = RunOptions.engine
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    paused: bool = False
    on_partial: OnPartial = RunOptions.on_partial
    outside: Outside = RunOptions.outside
    on_success: str | None = None
    on_failure: str | None = None
    setup: str | None = None
    teardown: str | None = None
    freshness: Json | None = None

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> Self:
        """Read a declaration. Raises KeyError without outlets or strategy."""
        values = _known_values(cls, json)
        values["strategy"] = json["strategy"]
        values["outlets"] = tuple(OutletSpec.from_json(outlet) for outlet in json["outlets"])
        return cls(**values)

    def to_json(self) -> Json:
        """Return the declaration as JSON."""
        return _json_of(self, _LEFT_OUT) | {
            "outlets": [outlet.to_json() for outlet in self.outlets]
        }

    @property
    def outlet_names(self) -> list[str]:
        """The names of the assets that the function materializes, in order."""
        return [outlet.name for outlet in self.outlets]

    @property
    def scheduling_names(self) -> list[str]:
        """The names of the assets in the schedule."""
        return schedule_names(self.schedule)

    @property
    def fresh_names(self) -> list[str]:
        """The names of the assets that are to be fresh by the schedule."""
        return fresh_names(self.schedule)

    @property
    def upstream_names(self) -> list[str]:
        """The names of the assets that the function reads, and of the assets in the schedule."""
        return list(dict.fromkeys([*self.inlets, *self.scheduling_names, *self.fresh_names]))

    def freshness_of(self, outlet: OutletSpec) -> Json | None:
        """Return when the partitions of an outlet are to be there; None if nothing is said."""
        return outlet.freshness or self.freshness

    def hook_name(self, option: str) -> str | None:
        """Return the name of the function that ``on_success`` or ``on_failure`` names, if any."""
        return {"on_success": self.on_success, "on_failure": self.on_failure}[option]

    @property
    def step_names(self) -> dict[str, str]:
        """The name of the function of each step of a run, in order; empty without set-up and
        tear-down.
        """
        if not self.setup and not self.teardown:
            return {}
        names = {"setup": self.setup, "function": self.name, "teardown": self.teardown}
        return {step: name for step, name in names.items() if name}

    def partition_of(self, asset: str) -> Json | None:
        """Return the partition definition of an outlet; None without partitions."""
        outlet = next((outlet for outlet in self.outlets if outlet.name == asset), None)
        return (outlet and outlet.partition) or self.partition


def outlet_names(json: Mapping[str, Any]) -> list[str]:
    """Return the names of the outlets in a producer's JSON, also where other keys are missing.

    Servers ask for many producers at once: a row that lacks a key must not stop the other ones.
    """
    return [outlet["name"] for outlet in json.get("outlets") or ()]


def _known_values(cls: type[OutletSpec | ProducerSpec], json: Mapping[str, Any]) -> Json:
    known = cls.__dataclass_fields__
    return {name: value for name, value in json.items() if value is not None and name in known}


def _json_of(spec: object, left_out: Sequence[str]) -> Json:
    """Return the fields of a spec; a field in ``left_out`` has no key for its default value."""
    values = {name: _plain(value) for name, value in vars(spec).items()}
    return {name: value for name, value in values.items() if value or name not in left_out}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
