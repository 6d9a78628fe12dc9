"""The embedded ledger store: ledgers of entries on a disk, in journal, entry logs and index.

In: entries of ledgers, and a `Disk`. Out: confirmations a group at a time, and runs of entries.
`bookie` keeps the contract of `ledgers.store`, with `handles` for its readers and writers. Its
rooms, each using those before it: `shared`, `journal`, `index`, `entry_logs`. `journal_replay`
reads the journal into the others at a start, `housekeeper` flushes and collects, `disk_reserve`
keeps a last piece of the disk free; `inspection` is for a storage that is stopped.

Third-party packages it may import: protobuf, msgspec, crc32c, pyroaring.
"""
