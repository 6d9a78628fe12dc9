"""Columns of messages: values by the topic's schema, metadata, and columns back into payloads.

In: messages and the schemas of their topics; or record batches to write. Out: Arrow arrays by
column; or payloads with the schema that producers register. `topic_schemas` alone asks brokers.

Third-party packages it may import: pyarrow, protobuf.
"""
