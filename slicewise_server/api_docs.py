"""The API's description, for programs (OpenAPI 3.1) and for people."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.contrib.auth.mixins import LoginRequiredMixin
from django.views.generic import TemplateView
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView

from accounts_app.api.base import ApiView

METHODS = ("get", "post", "put", "patch", "delete")
# The groups of the page in order, each with the first parts of its paths.
GROUPS = {
    "Assets": ("assets", "asset-graph"),
    "Runs": ("runs",),
    "Backfills": ("backfills",),
    "Alerts": ("channels", "alert-rules", "deliveries"),
    "Events and lineage": ("events", "lineage"),
    "Server": ("gateways", "health"),
    "Tokens": ("tokens",),
}


@extend_schema(exclude=True)
class SchemaView(ApiView, SpectacularAPIView):
    """The OpenAPI document as YAML, or as JSON for clients that ask for JSON."""


class DocsView(LoginRequiredMixin, TemplateView):
    """The OpenAPI document as a page: groups of operations with parameters, bodies and examples."""

    template_name = "api/docs.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
        return super().get_context_data(**kwargs) | {
            "info": schema["info"],
            "groups": grouped(list(operations(schema))),
        }


def grouped(all_operations: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the operations of each group, in the order of the groups."""
    return {
        title: [operation for operation in all_operations if operation["tags"][0] in tags]
        for title, tags in GROUPS.items()
    }


def operations(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each operation with its address, its method, and the examples of its bodies."""
    for path, methods in schema["paths"].items():
        for method in METHODS:
            if method not in methods:
                continue
            operation = methods[method]
            yield operation | {
                "path": path,
                "method": method.upper(),
                "body": _media(operation.get("requestBody", {})),
                "answers": [
                    {"status": status, "description": answer.get("description", "")}
                    | _media(answer)
                    for status, answer in operation["responses"].items()
                    # The page says once which errors any operation may have.
                    if status != "default"
                ],
            }


def _media(body: dict[str, Any]) -> dict[str, Any]:
    """Return the first media type of a body, the name of the schema, and the examples."""
    for media_type, content in body.get("content", {}).items():
        reference = content.get("schema", {}).get("$ref", "")
        return {
            "media_type": media_type,
            "schema": reference.rpartition("/")[2],
            "examples": [
                {"summary": name, "value": json.dumps(example["value"], indent=2)}
                for name, example in content.get("examples", {}).items()
            ],
        }
    return {}
