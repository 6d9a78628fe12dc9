"""Types of values by Python's own types: classes of users become records.

In: dataclasses, pydantic's models, typed dicts, named tuples, `Record` classes. Out: types of
`values`, or an error that names the field and what to use instead.

Third-party packages it may import: none; pydantic is looked at only where a program has loaded it.
"""
