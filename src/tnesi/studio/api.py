"""The HTTP API of the page; `ENDPOINTS` lists all requests."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tnesi.data.image_files import ImageFileError
from tnesi.studio import export
from tnesi.studio.answers import RefusedError
from tnesi.studio.events import event_stream
from tnesi.studio.field_map import FieldMap
from tnesi.studio.first_layer import FirstLayer
from tnesi.studio.learned import Learned
from tnesi.studio.requests import (
    Client,
    Export,
    Field,
    Gallery,
    Label,
    LargeRow,
    Nothing,
    Rename,
    RequestError,
    Row,
    RowOfClient,
    Rows,
    Version,
    Who,
    read,
)
from tnesi.studio.session import Session
from tnesi.studio.shown import MOST_TILES, ShownPictures
from tnesi.studio.store import DiskError, Taken

Json = dict[str, Any]
_PNG = "image/png"
T = TypeVar("T", bound=Struct)


@dataclass(frozen=True)
class Endpoint(Generic[T]):
    """A request: method, address, parameters, handler, and the media type of the response."""

    method: str
    address: str
    summary: str
    given: type[T]
    answer: Callable[[Session, T, Request], Awaitable[Response]]
    content: str = "application/json"


async def respond(endpoint: Endpoint[Any], session: Session, request: Request) -> Response:
    """Validate and answer a request; errors become JSON messages for the user."""
    try:
        return await endpoint.answer(session, await read(request, endpoint.given), request)
    except RequestError as error:
        return JSONResponse({"error": error.text}, error.status)
    except RefusedError as error:
        return JSONResponse({"error": str(error)}, 409)
    except DiskError as error:
        return JSONResponse({"error": str(error)}, 507)


# The state


async def _state(session: Session, given: Client, request: Request) -> Response:
    return Response(session.state_text(given.client)[1], media_type="application/json")


async def _events(session: Session, given: Client, request: Request) -> Response:
    return event_stream(session, given.client, request)


async def _question(session: Session, given: Client, request: Request) -> Response:
    return JSONResponse({"question": session.question(given.client)})


async def _schema(session: Session, given: Nothing, request: Request) -> Response:
    from tnesi.studio.schema import description

    return JSONResponse(description(ENDPOINTS, session.shown.n_rows))


# Answers


async def _taken(session: Session, future: Future[Taken]) -> Taken:
    """Wait until an answer is on disk."""
    taken = await asyncio.wrap_future(future)
    if taken.new:
        session.answered()
    return taken


async def _answered(session: Session, given: Who, future: Future[Taken]) -> Response:
    taken = await _taken(session, future)
    return JSONResponse({"answer": taken.entry.id, "question": session.question(given.client)})


async def _label(session: Session, given: Label, request: Request) -> Response:
    _existing(session, given.row)
    future = _refusable(session.store.label, given.row, given.label, given.client, given.request)
    return await _answered(session, given, future)


async def _skip(session: Session, given: RowOfClient, request: Request) -> Response:
    _existing(session, given.row)
    return await _answered(session, given, session.store.skip(given.row, given.client, given.request))


async def _clear(session: Session, given: RowOfClient, request: Request) -> Response:
    _existing(session, given.row)
    return await _answered(session, given, session.store.clear(given.row, given.client, given.request))


async def _rename(session: Session, given: Rename, request: Request) -> Response:
    future = _refusable(session.store.rename, given.old, given.new, given.client, given.request)
    return await _answered(session, given, future)


async def _undo(session: Session, given: Who, request: Request) -> Response:
    taken = await _taken(session, session.store.undo(given.client, given.request))
    assert taken.entry.undone is not None
    undone = session.store.entry(taken.entry.undone)
    if undone.row is not None and taken.new and undone.row not in session.store.view.done:
        session.questions.reopen(given.client, undone.row)
    now = None if undone.row is None else session.store.view.labels.get(undone.row)
    found = {"row": undone.row, "label": undone.label, "old": undone.old, "kind": undone.kind, "now": now}
    return JSONResponse({"answer": taken.entry.id, "undone": found, "question": session.question(given.client)})


def _refusable(act: Callable[..., Future[Taken]], *given: Any) -> Future[Taken]:
    """Check names before anything is written: invalid ones are errors of the request."""
    try:
        return act(*given)
    except RefusedError as error:
        raise RequestError(422, str(error)) from error


def _existing(session: Session, row: int) -> int:
    if row >= session.shown.n_rows:
        raise RequestError(404, f"There is no row {row}: rows are numbered from 0 to {session.shown.n_rows - 1}")
    return row


# The map and its fields


async def _map(session: Session, given: Nothing, request: Request) -> Response:
    version, (layer, shown_map) = session.map_version, _ready_map(session)
    names, number, certainty = _field_classes(session, layer, shown_map.fields)
    cells = [
        {"field": c, "x": x, "y": y, "class": k, "certainty": sure, "mass": mass}
        for c, x, y, k, sure, mass in zip(
            shown_map.fields.tolist(), shown_map.x.tolist(), shown_map.y.tolist(), number, certainty,
            np.round(shown_map.mass, 2).tolist(), strict=True,
        )
    ]  # fmt: skip
    sheet, texts = None, await asyncio.to_thread(session.field_texts, layer, shown_map)
    if texts is not None:
        for cell, text in zip(cells, texts, strict=True):
            cell["text"] = text
    else:
        sheet = f"/api/pictures/fields.png?version={version}"
    return JSONResponse(
        {
            "version": version,
            "columns": shown_map.columns,
            "rows": shown_map.rows,
            "cells": cells,
            "classes": names,
            "sheet": sheet,
            "sheet_columns": shown_map.columns,
            "tile": list(session.shown.tile),
        }
    )


async def _map_classes(session: Session, given: Nothing, request: Request) -> Response:
    layer, shown_map = _ready_map(session)
    names, number, certainty = _field_classes(session, layer, shown_map.fields)
    return JSONResponse({"version": session.map_version, "class": number, "certainty": certainty, "classes": names})


def _ready_map(session: Session) -> tuple[FirstLayer, FieldMap]:
    layer, shown_map = session.layer, session.map
    if layer is None or shown_map is None:
        raise RequestError(409, "The map is not ready yet: try again in a moment")
    return layer, shown_map


def _field_classes(session: Session, layer: FirstLayer, fields: Any) -> tuple[list[str], list[int], list[float]]:
    learned = _of_layer(session, layer)
    if learned is None:
        return [], [-1] * len(fields), [0.0] * len(fields)
    return learned.names, learned.field_class[fields].tolist(), np.round(learned.field_certainty[fields], 3).tolist()


def _of_layer(session: Session, layer: FirstLayer) -> Learned | None:
    """Return what was learned if it has classes and belongs to the layer shown."""
    learned = session.learned
    return learned if learned is not None and learned.model is not None and learned.layer is layer else None


async def _field(session: Session, given: Field, request: Request) -> Response:
    layer, c = session.layer, given.field
    if layer is None or c >= layer.n_fields:
        raise RequestError(404, f"There is no field {c}")
    learned = _of_layer(session, layer)
    found: Json = {"field": c, "class": None, "certainty": 0.0, "mass": round(float(layer.mass[c]), 2)}
    if learned is not None and learned.field_class[c] >= 0:
        found["class"] = learned.names[learned.field_class[c]]
        found["certainty"] = round(float(learned.field_certainty[c]), 3)
    found |= session.shown.field_details(layer, c)
    found["neighbors"] = layer.neighbors(c)
    found["rows"] = [session.brief(row) | {"activity": round(s, 4)} for row, s in layer.nearest(c)]
    return JSONResponse(found)


# Rows


async def _row(session: Session, given: Row, request: Request) -> Response:
    row = _existing(session, given.row)
    history = [
        {"answer": e.id, "kind": e.kind, "label": e.label, "time": e.time, "client": e.client}
        for e in session.store.history(row)
    ]
    layer, fields = session.layer, []
    if layer is not None and layer.rows is None:
        own = layer.activities[[row]]
        fields = own.indices[np.argsort(-own.data, kind="stable")].tolist()
    details = session.shown.details(row, whole=True)
    probabilities = {"probabilities": session.suggested(row), "history": history, "fields": fields}
    return JSONResponse({**session.brief(row), **probabilities, **details})


async def _gallery(session: Session, given: Gallery, request: Request) -> Response:
    learned, view = session.learned, session.store.view
    if given.labeled:
        rows = np.array(sorted(view.labels), dtype=np.int64)
        if given.of_class:
            rows = np.array([row for row in rows.tolist() if view.labels[row] == given.of_class], dtype=np.int64)
        if given.order != "index" and learned is not None and learned.model is not None:
            sign = -1 if given.order == "certain" else 1
            rows = rows[np.argsort(sign * learned.margin[rows], kind="stable")]
    elif learned is None or learned.model is None:
        rows = np.empty(0, np.int64) if given.of_class else np.arange(session.shown.n_rows)
    elif not given.of_class:
        rows = learned.order(None, given.order)
    elif given.of_class in learned.names:
        rows = learned.order(learned.names.index(given.of_class), given.order)
    else:
        rows = np.empty(0, np.int64)
    page = rows[given.offset : given.offset + given.limit]
    return JSONResponse({"total": len(rows), "rows": [session.brief(row) for row in page.tolist()]})


# Pictures


async def _rows_png(session: Session, given: Rows, request: Request) -> Response:
    shown = _with_pictures(session)
    rows = [int(row) for row in given.rows.split(",")]
    if len(rows) > MOST_TILES:
        raise RequestError(422, f"{len(rows)} rows are too many: request at most {MOST_TILES}")
    for row in rows:
        _existing(session, row)
    return await _picture(request, lambda: (shown.rows_sheet(rows), _PNG))


async def _row_png(session: Session, given: LargeRow, request: Request) -> Response:
    shown = _with_pictures(session)
    row = _existing(session, given.row)
    try:
        return await _picture(request, lambda: shown.large(row, given.size))
    except ImageFileError as error:
        raise RequestError(404, f"{session.file(row)} {error}") from error


async def _fields_png(session: Session, given: Version, request: Request) -> Response:
    shown, (layer, shown_map) = _with_pictures(session), _ready_map(session)
    return await _picture(request, lambda: (shown.fields_sheet(layer, shown_map.fields, shown_map.columns), _PNG))


def _with_pictures(session: Session) -> ShownPictures:
    if not isinstance(session.shown, ShownPictures):
        raise RequestError(404, "These rows are shown as text and have no pictures")
    return session.shown


async def _picture(request: Request, draw: Callable[[], tuple[bytes, str]]) -> Response:
    content, media_type = await asyncio.to_thread(draw)
    return with_etag(request, content, media_type, "private, no-cache")


def with_etag(request: Request, content: bytes, media_type: str, cache_control: str) -> Response:
    """Return content, or 304 if the browser has it (addresses stay the same when content changes)."""
    etag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
    headers = {"etag": etag, "cache-control": cache_control}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media_type, headers=headers)


def _export(name: str, content: str) -> Endpoint[Any]:
    async def answer(session: Session, given: Struct, request: Request) -> Response:
        return await export.download(session, name, content, exact=isinstance(given, Export) and bool(given.exact))

    given = Export if name.endswith(".csv") else Nothing
    return Endpoint("GET", f"/api/export/{name}", f"Download {name}", given, answer, content)


ENDPOINTS: list[Endpoint[Any]] = [
    Endpoint("GET", "/api/state", "The state of the page", Client, _state),
    Endpoint("GET", "/api/events", "The state after each change", Client, _events, "text/event-stream"),
    Endpoint("GET", "/api/schema", "This description", Nothing, _schema),
    Endpoint("GET", "/api/question", "The open question of a client", Client, _question),
    Endpoint("POST", "/api/answers", "Give a row a label", Label, _label),
    Endpoint("POST", "/api/skips", "Skip a row", RowOfClient, _skip),
    Endpoint("POST", "/api/undo", "Undo the last answer", Who, _undo),
    Endpoint("DELETE", "/api/answers/{row}", "Remove the label of a row", RowOfClient, _clear),
    Endpoint("POST", "/api/classes/rename", "Rename a class, or merge two", Rename, _rename),
    Endpoint("GET", "/api/map", "The map of the fields", Nothing, _map),
    Endpoint("GET", "/api/map/classes", "The classes of the fields on the map", Nothing, _map_classes),
    Endpoint("GET", "/api/fields/{field}", "A field and its nearest rows", Field, _field),
    Endpoint("GET", "/api/rows/{row}", "Details of a row", Row, _row),
    Endpoint("GET", "/api/gallery", "Rows of a class", Gallery, _gallery),
    Endpoint("GET", "/api/pictures/rows.png", "Small pictures of rows", Rows, _rows_png, _PNG),
    Endpoint("GET", "/api/pictures/row/{row}.png", "A large picture of a row", LargeRow, _row_png, _PNG),
    Endpoint("GET", "/api/pictures/fields.png", "Small pictures of the fields on the map", Version, _fields_png, _PNG),
    *(_export(name, content) for name, content in export.FILES.items()),
]
