"""A client of the API that compares each answer with the OpenAPI document."""

import re
from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator
from rest_framework.test import APIClient

# Answers that every operation may give: the document has one description of these, `default`.
OF_ANY_OPERATION = {405, 406, 408, 500, 503}


class DescribedClient(APIClient):
    """A program that fails on an answer that the OpenAPI document does not describe: on the status,
    on a field, or on the form of a value.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # Now, so that no test that measures time or statements generates the document.
        _operations()

    def request(self, **request: Any) -> Any:
        """Return the answer to a request."""
        response = super().request(**request)
        difference = undescribed(request["REQUEST_METHOD"], request["PATH_INFO"], response)
        assert not difference, difference
        return response


def undescribed(method: str, path: str, response: Any) -> str:
    """Return the first difference between an answer and the document; empty without one.

    Addresses and methods that the document does not have are not compared.
    """
    for pattern, template in _operations():
        if pattern.fullmatch(path) and (template, method.lower()) in _answers():
            answers = _answers()[template, method.lower()]
            break
    else:
        return ""
    operation = f"{method} {template}: {response.status_code}"
    if str(response.status_code) not in answers and response.status_code not in OF_ANY_OPERATION:
        return f"{operation} is not in the document"
    media_type = response.headers.get("Content-Type", "").partition(";")[0]
    status = str(response.status_code)
    validators = answers[status] if status in answers else answers["default"]
    if not validators:
        return f"{operation} has a body" if response.content else ""
    if media_type not in validators:
        return f"{operation} has the media type {media_type!r}; described are {list(validators)}"
    for error in validators[media_type].iter_errors(response.json()):
        return f"{operation}, {error.json_path}: {error.message[:500]}"
    return ""


Validators = dict[str, Draft202012Validator]


@cache
def _operations() -> list[tuple[re.Pattern[str], str]]:
    """Return the templates of addresses as patterns, with the most constant ones first."""
    templates = sorted({template for template, _ in _answers()}, key=lambda text: text.count("{"))
    return [(re.compile(re.sub(r"\{\w+\}", "[^/]+", text)), text) for text in templates]


@cache
def _answers() -> dict[tuple[str, str], dict[str, Validators]]:
    """Return validators by operation, status and media type."""
    document = SchemaGenerator().get_schema(public=True)  # type: ignore[no-untyped-call]
    components = {"schemas": _closed(document["components"]["schemas"])}
    return {
        (path, method): {
            status: {
                media_type: Draft202012Validator(
                    {**_closed(content["schema"]), "components": components}
                )
                for media_type, content in answer.get("content", {}).items()
            }
            for status, answer in operation["responses"].items()
        }
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }


def _closed(schema: Any) -> Any:
    """Return a schema whose objects have no fields but the described ones."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed
