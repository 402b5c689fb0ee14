"""The OpenAPI description, generated from the endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

import tnesi

if TYPE_CHECKING:
    from tnesi.studio.api import Endpoint

Json = dict[str, Any]

_ERRORS = {
    "400": "invalid JSON",
    "401": "invalid token",
    "403": "cross-site request or invalid host name",
    "404": "not found",
    "409": "conflict with the current state",
    "413": "too large",
    "414": "too long",
    "415": "not JSON",
    "422": "invalid value",
    "429": "too many pages",
    "507": "disk full",
}


def description(endpoints: Sequence[Endpoint[Any]], n_rows: int) -> Json:
    """Return the description of these endpoints."""
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
        "responses": {"200": {"description": "success", "content": {endpoint.content: {}}}},
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
