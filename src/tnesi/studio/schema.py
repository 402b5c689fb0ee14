"""The description of the API (OpenAPI), made from the endpoints themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

import tnesi

if TYPE_CHECKING:
    from tnesi.studio.api import Endpoint

Json = dict[str, Any]

_ERRORS = {
    "400": "no JSON",
    "401": "no token",
    "403": "from another page or by another name",
    "404": "no such thing",
    "409": "not possible now",
    "413": "too large",
    "414": "too long",
    "415": "no JSON",
    "422": "a value is not right",
    "429": "too many",
    "507": "no room on the disk",
}


def description(endpoints: Sequence[Endpoint[Any]], n_rows: int) -> Json:
    """Return the description of these endpoints, for data of so many rows."""
    paths: dict[str, Json] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.address, {})[endpoint.method.lower()] = _operation(endpoint)
    error = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "tnesi label", "version": tnesi.__version__, "description": f"{n_rows} rows"},
        "paths": paths,
        "components": {
            "schemas": {"Error": error},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(endpoint: Endpoint[Any]) -> Json:
    given = msgspec.json.schema(endpoint.given)["$defs"][endpoint.given.__name__]
    found: Json = {
        "summary": endpoint.summary,
        "responses": {"200": {"description": "done", "content": {endpoint.content: {}}}},
    }
    reference = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for status, text in _ERRORS.items():
        found["responses"][status] = {"description": text, "content": reference}
    if endpoint.method == "POST":
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": given}}}
        return found
    found["parameters"] = [
        {
            "name": name,
            "in": "path" if f"{{{name}}}" in endpoint.address else "query",
            "required": name in given["required"],
            "schema": schema,
        }
        for name, schema in given["properties"].items()
    ]
    return found
