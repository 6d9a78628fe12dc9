"""The journal: what is confirmed is in it, one group of entries and records with each sync.

In: entries and records of one turn of the loop. Out: one call for each group, when it is durable or
has failed; at a start, all groups since the last checkpoint.

`journal` writes, `journal_format` has the bytes, `journal_reader` and `recovery` read it back at a
start; `group_outcomes` and `answer_watch` tell appenders how their group ended.
"""
