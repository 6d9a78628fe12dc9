"""Every place where the engine syncs something, and the test that fails without it.

Each name is one call site: nothing else in the engine syncs that kind of thing. The simulated disk
leaves the named sync out; `test_sync_mutations` then runs the named test's sweep and expects it to
fail. A sync that the engine makes and that is not listed here fails a test as well.
"""

from __future__ import annotations

SWEEP = "test_what_was_confirmed_survives_a_crash_at_any_write_point"

KILL_SWEEP = "test_what_a_killed_process_has_left_survives_a_crash_of_the_next"

SYNC_MUTATIONS: dict[str, str] = {
    # AppendFile.append_and_sync in Journal._write_block: a group's entries and records.
    "group:journal": SWEEP,
    # Disk.sync_file in JournalReplay._sync_journal: blocks of a process that was killed.
    "found:journal": KILL_SWEEP,
    # AppendFile.append_and_sync in EntryLogWriter.write_and_sync: large entries of a group, before
    # its block refers to them.
    "group:entries": SWEEP,
    # AppendFile.sync in JournalFiles._take_spare: the header of a new life, before its name.
    "data:journal": SWEEP,
    # Disk.sync_directory in Journal._create_file: the journal file's name.
    "names:journal": SWEEP,
    # EntryLogWriter.sync in RunWriter.sync: runs, before the index refers to them.
    "data:entries": SWEEP,
    # Disk.sync_directory in RunWriter.sync and RunLog._roll: names of new logs.
    "names:entries": SWEEP,
    # AppendFile.sync in IndexTableWriter.finish: a table, before the manifest names it.
    "data:index": SWEEP,
    # Disk.sync_directory in IndexTableWriter.finish: the table's name.
    "names:index": SWEEP,
    # Disk.sync_directory in JournalReplay._make_directories: the three directories; and in
    # JournalReplay.run, the manifest's name after a kill, which only the other sweep misses.
    "names:": SWEEP,
    # The two inside Disk.replace, in LedgerStorage._install: content before name, name before
    # journals and old files are removed.
    "replace-data:MANIFEST": SWEEP,
    "replace-name:MANIFEST": SWEEP,
}
