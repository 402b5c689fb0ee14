"""What a request may hold: described once, for the checks and for the description of the API."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.requests import ClientDisconnect, Request

MOST_BYTES = 2**14
"""Of the body of a request."""
_PATIENCE = 10.0
"""Seconds to wait for the rest of it."""
Json = dict[str, Any]


class RequestError(Exception):
    """A request that is refused; the text is for a person."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


class Kind(Protocol):
    """A kind of value: `schema` describes it, `of_text` and `of_json` check one and return it (ValueError: wrong)."""

    @property
    def schema(self) -> Json: ...
    def of_text(self, text: str) -> Any: ...
    def of_json(self, value: Any) -> Any: ...


@dataclass(frozen=True)
class Text:
    """A text of some length that fits a pattern as a whole."""

    shortest: int = 0
    longest: int = 100
    pattern: str | None = None

    @property
    def schema(self) -> Json:
        found: Json = {"type": "string", "minLength": self.shortest, "maxLength": self.longest}
        return found if self.pattern is None else found | {"pattern": f"^{self.pattern}$"}

    def of_text(self, text: str) -> str:
        if not self.shortest <= len(text) <= self.longest:
            raise ValueError(f"a text of {self.shortest} to {self.longest} characters")
        if self.pattern is not None and not re.fullmatch(self.pattern, text, re.ASCII):
            raise ValueError(f"of the form {self.pattern}")
        return text

    def of_json(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError("a text")
        return self.of_text(value)


@dataclass(frozen=True)
class Whole:
    """A whole number."""

    low: int
    high: int
    or_null: bool = False

    @property
    def schema(self) -> Json:
        return {
            "type": ["integer", "null"] if self.or_null else "integer",
            "minimum": self.low,
            "maximum": self.high,
        }

    def of_text(self, text: str) -> int:
        if not re.fullmatch("-?[0-9]{1,15}", text):
            raise ValueError("a whole number")
        return self._checked(int(text))

    def of_json(self, value: Any) -> int | None:
        if value is None and self.or_null:
            return None
        if isinstance(value, float) and value.is_integer():  # JSON knows no difference
            value = int(value)
        if type(value) is not int:
            raise ValueError("a whole number")
        return self._checked(value)

    def _checked(self, number: int) -> int:
        if not self.low <= number <= self.high:
            raise ValueError(f"from {self.low} to {self.high}")
        return number


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def schema(self) -> Json:
        return {"type": "string", "enum": list(self.words)}

    def of_text(self, text: str) -> str:
        if text not in self.words:
            raise ValueError(f"one of {', '.join(self.words)}")
        return text

    def of_json(self, value: Any) -> str:
        return self.of_text(value if isinstance(value, str) else "")


@dataclass(frozen=True)
class Numbers:
    """Whole numbers with commas between them."""

    high: int
    most: int

    @property
    def schema(self) -> Json:
        return {"type": "string", "pattern": "^[0-9]{1,15}(,[0-9]{1,15})*$", "maxLength": 16 * self.most}

    def of_text(self, text: str) -> list[int]:
        if not re.fullmatch("[0-9]{1,15}(,[0-9]{1,15})*", text, re.ASCII):
            raise ValueError("numbers with commas between them")
        found = [int(one) for one in text.split(",")]
        if len(found) > self.most or max(found) > self.high:
            raise ValueError(f"at most {self.most} numbers up to {self.high}")
        return found

    def of_json(self, value: Any) -> list[int]:
        return self.of_text(value if isinstance(value, str) else "")


@dataclass(frozen=True)
class Given:
    """A value in a request: its kind, and what it is where it is left out (`...`: it has to be there)."""

    kind: Kind
    default: Any = ...


def from_query(request: Request, wanted: Mapping[str, Given]) -> Json:
    """Return the checked values of the query."""
    given = request.query_params
    found: Json = {}
    for name, value in wanted.items():
        several = given.getlist(name)
        if len(several) > 1:
            raise RequestError(422, f"{name} is given {len(several)} times: give it once")
        if not several and value.default is ...:
            raise RequestError(422, f"{name} is missing in the address")
        found[name] = _checked(name, value.kind.of_text, several[0]) if several else value.default
    return found


def from_path(request: Request, wanted: Mapping[str, Given]) -> Json:
    """Return the checked values of the path; one that is not right is not found."""
    try:
        return {name: _checked(name, value.kind.of_text, request.path_params[name]) for name, value in wanted.items()}
    except RequestError as error:
        raise RequestError(404, error.text) from error


async def from_body(request: Request, wanted: Mapping[str, Given]) -> Json:
    """Return the checked values of a JSON object in the body."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RequestError(415, "the body has to be JSON (Content-Type: application/json)")
    try:
        body = await asyncio.wait_for(request.body(), _PATIENCE)
        given = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except (TimeoutError, ClientDisconnect) as error:
        raise RequestError(408, "the rest of the request has not come: send it again") from error
    except (ValueError, RecursionError) as error:
        raise RequestError(400, "the body is no JSON") from error
    if not isinstance(given, dict):
        raise RequestError(422, "the body has to be a JSON object")
    if unknown := sorted(given.keys() - wanted.keys()):
        raise RequestError(422, f"{unknown[0][:40]!r} is not known here")
    missing = [name for name, value in wanted.items() if value.default is ... and name not in given]
    if missing:
        raise RequestError(422, f"{missing[0]!r} is missing")
    return {
        name: _checked(name, value.kind.of_json, given[name]) if name in given else value.default
        for name, value in wanted.items()
    }


def _checked(name: str, check: Any, value: Any) -> Any:
    try:
        return check(value)
    except ValueError as error:
        raise RequestError(422, f"{name} has to be {error}") from error


def _no_constant(text: str) -> None:
    raise ValueError(text)
