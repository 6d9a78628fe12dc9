"""Authentication of clients, and the table of actions with the right that each needs.

In: credentials and certificates that connections and REST received. Out: a role, and the action of
a command or route. It imports `metadata` and `common` alone.
"""
