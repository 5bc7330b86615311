"""The report of the loader as a value: the declarations of one bundle."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slicewise.declaring import ExternalSpec, ProducerSpec


@dataclass(frozen=True, slots=True)
class DeclaredProducer:
    """A declared function and the function's text; ``definition`` is the declaration as JSON."""

    spec: ProducerSpec
    definition: dict[str, Any]
    source: str


@dataclass(frozen=True, slots=True)
class DeclaredBundle:
    """The declarations of a bundle, and the errors of files that could not be loaded."""

    producers: Sequence[DeclaredProducer]
    external: Sequence[ExternalSpec]
    errors: Sequence[dict[str, Any]]

    @property
    def specs(self) -> list[ProducerSpec | ExternalSpec]:
        """All declarations."""
        return [*(producer.spec for producer in self.producers), *self.external]


def declared_bundle(report: dict[str, Any]) -> DeclaredBundle:
    """Read the report of the loader."""
    return DeclaredBundle(
        [_producer(entry) for entry in report["producers"]],
        [ExternalSpec.from_json(entry) for entry in report["assets"]],
        report["errors"],
    )


def _producer(entry: dict[str, Any]) -> DeclaredProducer:
    definition = {key: value for key, value in entry.items() if key != "source"}
    return DeclaredProducer(ProducerSpec.from_json(entry), definition, entry["source"])
