"""Inputs that nobody sane sends, a great many of them, at what an outsider can reach.

`targets` are the broker's frame decoder, its command handlers and its REST routes; `inputs` and
`requests` make inputs by changing good ones; `run` feeds them, watches what they do, and keeps what went wrong.
`python -m tests.fuzz` runs it for as long as wanted; the suite runs a few thousand of each.
"""
