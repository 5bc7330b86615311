"""OpenLineage's published JSON schemas, and the schema of the facet with partitions.

`openlineage_spec` holds files of OpenLineage (Apache-2.0), unchanged, with their licence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

_SPEC = Path(__file__).parent / "openlineage_spec"
_OWN = Path(__file__).parents[2] / "docs/reference/openlineage"


def _registry() -> Registry[Any]:
    files = [*_SPEC.rglob("*.json"), *_OWN.glob("*.json")]
    contents = [json.loads(file.read_text()) for file in files]
    pairs = [(content["$id"], Resource.from_contents(content)) for content in contents]
    return Registry().with_resources(pairs)


_REGISTRY = _registry()


def check_event(event: dict[str, Any]) -> None:
    """Raise ValidationError unless the event, and each of its facets, fits the schema it names."""
    _validator(event["schemaURL"]).validate(event)
    for facet in facets(event):
        _validator(facet["_schemaURL"]).validate(facet)


def facets(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all facets of an event."""
    datasets = [*event.get("inputs", []), *event.get("outputs", [])]
    for owner in (event["run"], event["job"], *datasets):
        for group in ("facets", "inputFacets", "outputFacets"):
            yield from owner.get(group, {}).values()


def _validator(url: str) -> Draft202012Validator:
    return Draft202012Validator(
        {"$ref": url},
        registry=_REGISTRY,
        format_checker=Draft202012Validator.FORMAT_CHECKER,
    )
