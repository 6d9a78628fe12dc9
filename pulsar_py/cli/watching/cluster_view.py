"""`ClusterView`: what the brokers of a cluster say of it, side by side, and how they differ (pure).

Each broker answers for itself: since when it has its bundles, what it gained and lost and why, its
session; the leader also what it moved and split. Put together they tell what none of them can: that
a bundle has two owners, that brokers follow different leaders, that one does not answer.

    one:8080  leads     session good     busy 12 %  7 bundles  310 topics
    public/default/0x00000000_0x10000000  one:8080  since 2026-11-29 02:11:08Z
    2026-11-29 02:11:08Z  one:8080  gained public/default/0x00000000_0x10000000: nobody owned it
    2026-11-29 02:09:31Z  one:8080  moved public/default/… to two:8080: above the mean by 31 %
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

__all__ = ["ClusterView"]

Json = Mapping[str, Any]  # Any: JSON

BUNDLES_SHOWN: Final = 200
"""In text; JSON has all."""
CHANGES_SHOWN: Final = 20
"""Of either kind, the newest."""
URGENCIES: Final = ("error", "warning", "notice")
"""The worst first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The answers of one moment."""

    loads: Mapping[str, Json]
    """By id, what a broker said of its load (`GET /admin/v2/brokers/load`)."""
    symptoms: Mapping[str, Sequence[Json]] = field(default_factory=dict)
    """By id, what it said has to be looked at."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """By id, why a registered broker gave no answer."""

    def findings(self) -> list[Json]:
        """All symptoms, the worst first: those of each broker, and those of the comparison.

        A symptom that several brokers tell of the same subject is one, with all who told it.
        """
        found: dict[tuple[str, str], dict[str, Any]] = {}
        compared = {"": [*self._silent(), *self._of_two(), *self._leaders()]}
        for broker_id, some in {**compared, **self.symptoms}.items():
            for each in some:
                symptom = found.setdefault((each["code"], each["subject"]), {**each, "toldBy": []})
                symptom["toldBy"] += [broker_id] if broker_id else []
        return sorted(found.values(), key=lambda each: URGENCIES.index(each["urgency"]))

    def _silent(self) -> Iterator[Json]:
        for broker_id, reason in sorted(self.failures.items()):
            yield {
                "code": "BROKER_SILENT",
                "urgency": "error",
                "subject": broker_id,
                "message": f"{broker_id} is registered, and did not answer this command: {reason}",
                "help": "Look whether it runs, and whether its REST API can be reached from here.",
            }

    def _of_two(self) -> Iterator[Json]:
        owners: dict[str, list[str]] = {}
        for broker_id, load in sorted(self.loads.items()):
            if load["session"]["isGood"]:
                for each in load["bundles"]:
                    owners.setdefault(each["bundle"], []).append(broker_id)
        for bundle, some in sorted(owners.items()):
            if len(some) > 1:
                yield {
                    "code": "BUNDLE_OF_TWO",
                    "urgency": "error",
                    "subject": bundle,
                    "message": f"{bundle} is owned by {' and '.join(some)}, as they say.",
                    "help": "It may have moved while they were asked: ask again. If it stays so, "
                    "unload it; what is stored is safe, since one ledger has one writer.",
                }

    def _leaders(self) -> Iterator[Json]:
        leaders = {load.get("leaderId") for load in self.loads.values()} - {None}
        if len(leaders) > 1:
            names = ", ".join(sorted(map(str, leaders)))
            yield {
                "code": "LEADERS_DIFFER",
                "urgency": "warning",
                "subject": "cluster",
                "message": f"Brokers follow different leaders: {names}.",
                "help": "It should pass within a session; if not, look at the brokers' connections "
                "to ZooKeeper.",
            }

    def as_json(self) -> Json:
        """All of it, for programs."""
        return {
            "brokers": [self.loads[each] for each in sorted(self.loads)],
            "silent": dict(self.failures),
            "symptoms": self.findings(),
        }

    # Text

    def as_text(self) -> Iterator[str]:
        """Lines for people, in parts with a heading each."""
        ids = sorted({*self.loads, *self.failures})
        width = max(map(len, ids), default=0)
        yield "Brokers"
        for broker_id in ids:
            yield f"  {broker_id:{width}}  {self._state(broker_id)}"
        yield "Bundles"
        yield from self._some("  none", self._owned(), BUNDLES_SHOWN)
        yield "Gained and lost"
        yield from self._some("  nothing", self._changes(), CHANGES_SHOWN)
        yield "Moved and split by load"
        yield from self._some("  nothing", self._balanced(), CHANGES_SHOWN)
        yield "To look at"
        findings = self.findings()
        for each in findings:
            told_by = f" (told by {', '.join(each['toldBy'])})" if each["toldBy"] else ""
            yield f"  {each['urgency'].upper():8}{each['subject']}: {each['message']}{told_by}"
            yield f"          {each['help']}"
        if not findings:
            yield "  nothing"

    def _state(self, broker_id: str) -> str:
        load = self.loads.get(broker_id)
        if load is None:
            return f"no answer: {self.failures[broker_id]}"
        role = "leads" if load["isLeading"] else "leaves" if load["isLeaving"] else "follows"
        session = "good" if load["session"]["isGood"] else "IN DOUBT"
        own = next((each for each in load["brokers"] if each["brokerId"] == broker_id), None)
        busy = f"busy {own['usage']:4.0%}" if own is not None else "not registered"
        text = (
            f"{role:8} session {session:8} doubts {load['session']['doubts']}  {busy}  "
            f"{len(load['bundles'])} bundles  {load['loadedTopics']} topics"
        )
        held, loading = load["heldLookups"], load["loadingTopics"]
        return text + (f"  {loading} being opened, {held} lookups held" if held or loading else "")

    def _owned(self) -> list[str]:
        rows = [
            (each["bundle"], broker_id, each["since"])
            for broker_id, load in self.loads.items()
            for each in load["bundles"]
        ]
        return [f"  {name}  {owner}  since {_time(since)}" for name, owner, since in sorted(rows)]

    def _changes(self) -> list[str]:
        rows = [
            (each["at"], broker_id, f"{each['change']} {each['bundle']}: {each['reason']}")
            for broker_id, load in self.loads.items()
            for each in load["changes"]
        ]
        return [f"  {_time(at)}  {who}  {what}" for at, who, what in sorted(rows, reverse=True)]

    def _balanced(self) -> list[str]:
        rows = []
        for load in self.loads.values():
            for each in load["balancing"]:
                # What is empty is left out of the answer.
                where = f" to {each['destination']}" if each.get("destination") else ""
                failed = f"; it failed: {each['error']}" if each.get("error") else ""
                what = f"{each['kind']} {each['bundle']}{where}: {each['reason']}{failed}"
                rows.append((each["at"], each["broker"], what))
        return [f"  {_time(at)}  {who}  {what}" for at, who, what in sorted(rows, reverse=True)]

    @staticmethod
    def _some(nothing: str, lines: Sequence[str], most: int) -> Iterator[str]:
        yield from lines[:most] or [nothing]
        if len(lines) > most:
            yield f"  … and {len(lines) - most} more (-o json has all)"


def _time(millis: int) -> str:
    return f"{datetime.fromtimestamp(millis / 1000, UTC):%Y-%m-%d %H:%M:%SZ}"
