"""Lets Spark discover `format("pulsar")`: it imports top-level modules of this kind of name."""


def __getattr__(name: str) -> object:
    if name == "DefaultSource":
        from pulsar_py.spark.source import PulsarDataSource

        return PulsarDataSource
    raise AttributeError(name)
