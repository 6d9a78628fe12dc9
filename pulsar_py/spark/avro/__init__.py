"""Avro values and Arrow arrays: types, schema resolution, defaults, units and numbers of JSON.

In: the tree of a definition (`pulsar_py.schema.avro.avro_nodes`). Out: Arrow types with the
functions that convert values to and from them. It knows neither messages nor topics nor options.

Third-party packages it may import: pyarrow, fastavro.
"""
