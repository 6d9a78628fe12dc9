"""Checks that a run which resumes or repeats another one finds everything unchanged.

In: a stream's checkpoint directory, or the directory of a backfill's notes, and the settings of
the run at hand. Out: nothing if the run may go on, otherwise a `ConfigurationError` that names what
changed. Notes are written before the first row is.

Third-party packages it may import: none.
"""
