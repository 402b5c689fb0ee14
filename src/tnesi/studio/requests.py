"""Parameters of requests: typed structs, for validation and for the description of the API."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct
from starlette.requests import ClientDisconnect, Request

from tnesi.studio.answers import LONGEST_NAME
from tnesi.studio.shown import LARGEST_SIDE, MOST_TILES

MOST_BYTES = 2**14
"""Maximum size of a request body."""
_PATIENCE = 10.0
"""Seconds to wait for the rest of the body."""

T = TypeVar("T", bound=Struct)

# "$" alone would let a line feed at the end through
Id = Annotated[str, Meta(min_length=1, max_length=64, pattern="^[A-Za-z0-9_-]+$(?!\n)")]
IdOrNone = Annotated[str, Meta(max_length=64, pattern="^[A-Za-z0-9_-]*$(?!\n)")]
Name = Annotated[str, Meta(min_length=1, max_length=4 * LONGEST_NAME)]
Number = Annotated[int, Meta(ge=0, le=10**12)]
RowNumbers = Annotated[str, Meta(max_length=16 * MOST_TILES, pattern="^[0-9]{1,15}(,[0-9]{1,15})*$(?!\n)")]
Flag = Annotated[int, Meta(ge=0, le=1)]


class RequestError(Exception):
    """A refused request; the text is shown to the user."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


class Nothing(Struct, frozen=True): ...


class Client(Struct, frozen=True):
    client: IdOrNone = ""


class Who(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A client that answers; a request with an identifier can be retried."""

    client: Id
    request: IdOrNone = ""


class RowOfClient(Who, frozen=True, kw_only=True):
    row: Number


class Label(RowOfClient, frozen=True, kw_only=True):
    label: Name


class Rename(Who, frozen=True, kw_only=True):
    old: Name
    new: Name


class Row(Struct, frozen=True):
    row: Number


class Field(Struct, frozen=True):
    field: Number


class Rows(Struct, frozen=True):
    """Small pictures of rows, given by comma-separated numbers."""

    rows: RowNumbers


class LargeRow(Row, frozen=True):
    size: Annotated[int, Meta(ge=16, le=LARGEST_SIDE)] = 280


class Version(Struct, frozen=True):
    version: Number = 0


class Gallery(Struct, frozen=True):
    of_class: Annotated[str, Meta(max_length=4 * LONGEST_NAME)] = msgspec.field(default="", name="class")
    order: Literal["certain", "uncertain", "index"] = "index"
    labeled: Flag = 0
    offset: Number = 0
    limit: Annotated[int, Meta(ge=1, le=MOST_TILES)] = 60


class Export(Struct, frozen=True):
    exact: Flag = 0


async def read(request: Request, wanted: type[T]) -> T:
    """Return the checked values of a request: of its body (POST), or of its path and query.

    An invalid number in the path is reported as 404.
    """
    try:
        if request.method == "POST":
            return msgspec.convert(await _body(request), wanted)
        given: dict[str, Any] = {}
        for name in (field.encode_name for field in msgspec.structs.fields(wanted)):
            several = request.query_params.getlist(name)
            if len(several) > 1:
                raise RequestError(422, f"{name} occurs {len(several)} times: give it once")
            if several:
                given[name] = several[0]
        return msgspec.convert(given | _numbers(request.path_params), wanted, strict=False)
    except msgspec.ValidationError as error:
        raise RequestError(422, str(error)) from error


def _numbers(path: dict[str, str]) -> dict[str, int]:
    try:
        return msgspec.convert(path, dict[str, Number], strict=False)
    except msgspec.ValidationError as error:
        raise RequestError(404, str(error)) from error


async def _body(request: Request) -> Any:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RequestError(415, "The body must be JSON (Content-Type: application/json)")
    try:
        return _JSON.decode(await asyncio.wait_for(request.body(), _PATIENCE))
    except (TimeoutError, ClientDisconnect) as error:
        raise RequestError(408, "The request is incomplete: send it again") from error
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise RequestError(400, "The body is not valid JSON") from error


def _number(text: str) -> float:
    """Parse a number; 1.0 counts as an integer."""
    number = float(text)
    return int(number) if number.is_integer() else number


_JSON = msgspec.json.Decoder(float_hook=_number)
