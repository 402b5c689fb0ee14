"""Requests generated from the description of the API: none causes a server error."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance

from tnesi.studio.api import ENDPOINTS

pytestmark = pytest.mark.hypothesis  # its plugin does not see a test within a test
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance]
REQUESTS = [(one.method, one.address) for one in ENDPOINTS if one.address != "/api/events"]  # it does not end


@pytest.fixture(scope="module")
def described(shared_page: Any) -> Any:
    """The server's description of its API; some rows have labels."""
    for row in range(0, 60, 2):
        shared_page.answer(row, str(shared_page.session.data.y[row]))
    shared_page.learned()
    return schemathesis.openapi.from_url(f"{shared_page.origin}/api/schema", headers=headers_of(shared_page))


def headers_of(page: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {page.policy.token}", "Origin": page.origin}


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize(("method", "address"), REQUESTS)
def test_no_request_is_an_error_of_the_server(
    shared_page: Any, described: Any, method: str, address: str, mode: GenerationMode
) -> None:
    operation = described[address][method]
    strategy = operation.as_strategy(generation_mode=mode)

    @settings(
        max_examples=settings.default.max_examples // (60 if "/export/" in address else 6),
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def check(case: Any) -> None:
        case.call_and_validate(headers=headers_of(shared_page), checks=CHECKS, timeout=60)

    check()
    assert not shared_page.session.failed
