"""Each call of the console declares its parameters, body and answer, and serves them as a document.

That answers are as declared is compared at each call of the console's tests, see `conftest`.
"""

from __future__ import annotations

from tests.unit.console.conftest import ConsoleCalls


async def test_each_call_declares_its_answer(console: ConsoleCalls) -> None:
    calls = [
        each for each in console.conformance.routes if each.template.startswith("/admin/console/")
    ]
    assert len(calls) > 10
    assert [each.template for each in calls if each.answer is None] == []


async def test_the_document_has_all_calls(console: ConsoleCalls) -> None:
    document = await console.get("/admin/console/openapi.json")
    operations = {
        (method.upper(), path) for path, each in document["paths"].items() for method in each
    }
    assert operations == {
        (each.method, each.template.replace("{domain:persistent|non-persistent}", "{domain}"))
        for each in console.conformance.routes
        if each.template.startswith("/admin/console/")
    }
    preview = "/topic/{domain}/{tenant}/{namespace}/{topic}/subscription/{subscription}/preview"
    parameters = document["paths"]["/admin/console" + preview]["get"]["parameters"]
    assert {"count", "seconds", "timestamp"} <= {each["name"] for each in parameters}


async def test_a_wrong_type_in_a_body_is_refused(console: ConsoleCalls) -> None:
    path = "/admin/console/topic/persistent/public/default/t/message"
    response = await console.call("POST", path, {"text": "x", "eventTime": "soon"})
    assert response.status == 400
    assert b"eventTime" in response.body
