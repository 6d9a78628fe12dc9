"""Types of values: how each is in Python, in Avro and in JSON, with checks in both directions.

In: Python values, what fastavro and JSON have read. Out: what they write, and Python values. Knows
neither definitions as text nor classes of users.

Third-party packages it may import: none.
"""
