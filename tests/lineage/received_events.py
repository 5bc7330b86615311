"""Events of other tools, and the versions that the events have made."""

from __future__ import annotations

from typing import Any

from assets_app.models import Materialization

ADDRESS = "/api/v1/lineage/"
RUN = "01906bd5-0a00-7c3e-8d62-111111111111"
SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json"


def completed(*outputs: dict[str, Any], run: str = RUN, **fields: Any) -> dict[str, Any]:
    """Return the end of a successful run with these outputs."""
    return {
        "eventType": "COMPLETE",
        "eventTime": "2024-07-03T04:00:00Z",
        "producer": "https://example.com/importer",
        "schemaURL": f"{SPEC}#/$defs/RunEvent",
        "run": {"runId": run, "facets": {"anything": {"of": ["another", "tool"]}}},
        "job": {"namespace": "imports", "name": "orders"},
        "inputs": [{"namespace": "postgres://shop:5432", "name": "shop.public.orders"}],
        "outputs": list(outputs),
        **fields,
    }


def dataset(name: str, namespace: str = "s3://lake", **facets: Any) -> dict[str, Any]:
    return {"namespace": namespace, "name": name, **facets}


def partitions(selection: str, **more: Any) -> dict[str, Any]:
    """Return the facets that name partitions."""
    facet = {"_producer": "urn:x", "_schemaURL": "urn:y", "asset": "a", "partitionCount": 1}
    return {"facets": {"slicewise_partitions": {**facet, "selection": selection, **more}}}


def made_versions() -> list[tuple[str, int]]:
    """Return the keys and versions of all materializations, in their order."""
    rows = Materialization.objects.order_by("id").values_list("partition__key", "version")
    return list(rows)
