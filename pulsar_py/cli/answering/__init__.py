"""What all commands share in talking to their caller: the form of answers, and questions.

In: the option `-o`, `--yes`, and what was done. Out: lines of text or JSON on standard output, a
question on standard error.

Third-party packages it may import: click.
"""
