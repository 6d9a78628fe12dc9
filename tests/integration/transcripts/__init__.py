"""Replays what Apache Pulsar answered against any broker, and compares.

`recording` reads the file, `values` turns what is written into numbers and bytes, `frames` speaks
the protocol (on its own: it is the judge of `pulsar_py.wire`), `matching` compares, `player` plays
one scenario over sockets and HTTP, `expectations` lists what is not due and where we deviate.

    python -m tests.integration.transcripts --broker 127.0.0.1:6650 --web 127.0.0.1:8080 --only ack-one
"""
