"""`pulsar-py client`: publish, consume and read messages, with pulsar-client's options.

In: a topic, and what `connecting` says of the broker. Out: messages, one a line or in
pulsar-client's form. It stands on the asyncio client alone.

Third-party packages it may import: click.
"""
