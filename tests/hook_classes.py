"""Users' classes as tests of hooks name them: `tests.hook_classes.Named`."""

from __future__ import annotations

from pulsar_py.server.hooks import EntryFilter, FilterContext, FilteredEntry, FilterResult


class ByPayload(EntryFilter):
    """Rejects payloads that begin with `no`, puts off those with `later` once, fails on `bad`."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []
        self.contexts: list[FilterContext] = []
        self.is_closed = False

    def filter_entry(self, entry: FilteredEntry, context: FilterContext) -> FilterResult:
        key = (entry.ledger_id, entry.entry_id)
        is_new = key not in self.seen
        self.seen.append(key)
        self.contexts.append(context)
        if entry.payload.startswith(b"bad"):
            raise RuntimeError("a faulty filter")
        if entry.payload.startswith(b"no"):
            return FilterResult.REJECT
        if entry.payload.startswith(b"later") and is_new:
            return FilterResult.RESCHEDULE
        return FilterResult.ACCEPT

    def close(self) -> None:
        self.is_closed = True


class NothingPasses(EntryFilter):
    """Rejects everything."""

    def filter_entry(self, entry: FilteredEntry, context: FilterContext) -> FilterResult:
        del entry, context
        return FilterResult.REJECT


class OddPasses(EntryFilter):
    """Rejects what has an even `n` among its properties."""

    def filter_entry(self, entry: FilteredEntry, context: FilterContext) -> FilterResult:
        del context
        number = next(int(pair.value) for pair in entry.metadata.properties if pair.key == "n")
        return FilterResult.ACCEPT if number % 2 else FilterResult.REJECT


class NoFilter:
    """No filter at all."""
