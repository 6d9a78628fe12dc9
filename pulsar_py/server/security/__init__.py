"""Authentication and the table of rights: who a client is, and what its requests need.

In: credentials and certificates that connections and REST received. Out: a role, and the action
that a command or route takes. It stands on `metadata` and `common` alone.
"""
