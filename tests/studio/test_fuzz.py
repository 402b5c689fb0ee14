"""Requests of all kinds, made from the description of the API: none of them is an error of the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance

STREAMS = "/api/events"


@pytest.fixture(scope="module")
def api(shared_page: Any) -> Iterator[Any]:
    """The description that the server gives of itself; some rows have labels already."""
    for row in range(0, 60, 2):
        shared_page.answer(row, str(shared_page.session.data.y[row]))
    shared_page.learned()
    headers = {"Authorization": f"Bearer {shared_page.door.token}", "Origin": shared_page.origin}
    yield schemathesis.openapi.from_url(f"{shared_page.origin}/api/schema", headers=headers)
    assert not shared_page.session.failed


schema = schemathesis.pytest.from_fixture("api").exclude(path=STREAMS)


@schema.parametrize()
@settings(
    max_examples=25, deadline=None, phases=[Phase.explicit, Phase.generate], derandomize=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
def test_no_request_is_an_error_of_the_server(case: Any, shared_page: Any) -> None:
    headers = {"Authorization": f"Bearer {shared_page.door.token}", "Origin": shared_page.origin}
    case.call_and_validate(
        headers=headers, checks=[not_a_server_error, status_code_conformance, content_type_conformance], timeout=60
    )
