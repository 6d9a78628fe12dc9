"""The journal: writes entries and records in groups, and syncs each before it is confirmed.

In: entries and records of one turn of the loop. Out: one call for each group, when it is durable or
has failed; at a start, all groups since the last checkpoint.

`journal` writes, `journal_format` has the bytes, `journal_reader` and `recovery` read it back at a
start; `group_outcomes` and `answer_watch` tell appenders how their group ended.
"""
