from __future__ import annotations

from pulsar_py.admin.operations.symptom import Symptom, Urgency


def test_its_json_has_all_fields_and_the_worst_comes_first() -> None:
    symptom = Symptom("CODE", Urgency.WARNING, "it", "It is so.", "Do this.")
    assert symptom.json() == {
        "code": "CODE",
        "urgency": "warning",
        "subject": "it",
        "message": "It is so.",
        "help": "Do this.",
    }
    assert [each.value for each in Urgency] == ["error", "warning", "notice"]
