"""What brokers say side by side."""

from __future__ import annotations

from typing import Any

from pulsar_py.cli.watching.cluster_view import BUNDLES_SHOWN, ClusterView

Json = dict[str, Any]

HALF = "public/default/0x00000000_0x80000000"


def load(broker_id: str, **others: Any) -> Json:
    report = {"brokerId": broker_id, "usage": 0.125}
    nothing: Json = {
        "brokerId": broker_id, "leaderId": "one:8080", "isLeading": broker_id == "one:8080",
        "isLeaving": False, "session": {"isGood": True, "doubts": 0}, "heldLookups": 0,
        "loadedTopics": 0, "loadingTopics": 0, "brokers": [report], "bundles": [], "changes": [],
        "balancing": [],
    }  # fmt: skip
    return nothing | others


def view(*loads: Json, **others: Any) -> ClusterView:
    return ClusterView(loads={each["brokerId"]: each for each in loads}, **others)


def test_all_that_brokers_say_stands_side_by_side_the_newest_first() -> None:
    changes = [
        {"at": 1000, "bundle": HALF, "change": "gained", "reason": "nobody owned it"},
        {"at": 61_000, "bundle": HALF, "change": "lost", "reason": "moved to two:8080"},
    ]
    took = {"at": 61_000, "bundle": HALF, "change": "gained", "reason": "nobody owned it"}
    moved = {
        "at": 60_000, "kind": "moved", "bundle": HALF, "broker": "one:8080",
        "destination": "two:8080", "reason": "31 % above the mean",
    }  # fmt: skip
    split = moved | {"at": 50_000, "kind": "split", "error": "refused"}
    del split["destination"]
    one = load("one:8080", changes=changes, balancing=[split, moved])
    two = load(
        "two:8080", changes=[took], bundles=[{"bundle": HALF, "since": 61_000}], heldLookups=2,
        loadedTopics=7, session={"isGood": False, "doubts": 3},
    )  # fmt: skip
    del two["leaderId"]
    found = view(one, two, failures={"three:8080": "refused"})
    two_line = (
        "  two:8080    follows  session IN DOUBT doubts 3  busy  12%  1 bundles  7 topics  "
        "0 being opened, 2 lookups held"
    )
    assert list(found.as_text())[:-2] == [
        "Brokers",
        "  one:8080    leads    session good     doubts 0  busy  12%  0 bundles  0 topics",
        "  three:8080  no answer: refused",
        two_line,
        "Bundles",
        f"  {HALF}  two:8080  since 1970-01-01 00:01:01Z",
        "Gained and lost",
        f"  1970-01-01 00:01:01Z  two:8080  gained {HALF}: nobody owned it",
        f"  1970-01-01 00:01:01Z  one:8080  lost {HALF}: moved to two:8080",
        f"  1970-01-01 00:00:01Z  one:8080  gained {HALF}: nobody owned it",
        "Moved and split by load",
        f"  1970-01-01 00:01:00Z  one:8080  moved {HALF} to two:8080: 31 % above the mean",
        f"  1970-01-01 00:00:50Z  one:8080  split {HALF}: 31 % above the mean; it failed: refused",
        "To look at",
    ]
    assert [each["code"] for each in found.findings()] == ["BROKER_SILENT"]


def test_a_broker_alone_has_nothing_to_tell() -> None:
    lines = list(view(load("one:8080", brokers=[], isLeading=False, isLeaving=True)).as_text())
    assert lines[1] == (
        "  one:8080  leaves   session good     doubts 0  not registered  0 bundles  0 topics"
    )
    assert lines[2:] == [
        "Bundles", "  none", "Gained and lost", "  nothing", "Moved and split by load", "  nothing",
        "To look at", "  nothing",
    ]  # fmt: skip


def test_a_bundle_with_two_owners_and_two_leaders_are_told() -> None:
    owned = [{"bundle": HALF, "since": 1}]
    found = view(
        load("one:8080", bundles=owned), load("two:8080", bundles=owned, leaderId="two:8080")
    ).findings()
    assert [(each["code"], each["subject"]) for each in found] == [
        ("BUNDLE_OF_TWO", HALF),
        ("LEADERS_DIFFER", "cluster"),
    ]
    assert "one:8080 and two:8080" in found[0]["message"]


def test_who_is_in_doubt_is_not_believed_to_own_anything() -> None:
    owned = [{"bundle": HALF, "since": 1}]
    in_doubt = {"isGood": False, "doubts": 1}
    found = view(load("one:8080", bundles=owned, session=in_doubt), load("two:8080", bundles=owned))
    assert found.findings() == []


def test_what_several_brokers_tell_is_told_once_the_worst_first() -> None:
    def symptom(code: str, urgency: str, subject: str) -> Json:
        return {"code": code, "urgency": urgency, "subject": subject, "message": "m", "help": "h"}

    busy, gone = symptom("BUSY", "warning", "one"), symptom("GONE", "error", "three")
    found = view(
        load("one:8080"), load("two:8080"), symptoms={"one:8080": [busy], "two:8080": [busy, gone]}
    )
    told = [(each["code"], each["toldBy"]) for each in found.findings()]
    assert told == [("GONE", ["two:8080"]), ("BUSY", ["one:8080", "two:8080"])]
    assert list(found.as_text())[-4:] == [
        "  ERROR   three: m (told by two:8080)",
        "          h",
        "  WARNING one: m (told by one:8080, two:8080)",
        "          h",
    ]


def test_text_has_the_first_bundles_and_json_all() -> None:
    bundles = [{"bundle": f"b{number:04d}", "since": 0} for number in range(BUNDLES_SHOWN + 5)]
    found = view(load("one:8080", bundles=bundles))
    assert "  … and 5 more (-o json has all)" in list(found.as_text())
    assert len(found.as_json()["brokers"][0]["bundles"]) == BUNDLES_SHOWN + 5
