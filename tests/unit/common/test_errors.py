"""The tree of exceptions."""

from __future__ import annotations

import pytest

from pulsar_py.common import errors
from pulsar_py.proto.PulsarApi_pb2 import ServerError


def test_every_wire_code_has_one_class() -> None:
    assert set(errors.SERVICE_ERRORS) == set(ServerError.values())
    for code, kind in errors.SERVICE_ERRORS.items():
        assert kind.code == code


@pytest.mark.parametrize("code", ServerError.values(), ids=ServerError.Name)
def test_a_code_from_the_wire_becomes_its_class(code: ServerError.ValueType) -> None:
    error = errors.service_error(code, "text")

    assert error.code == code
    assert str(error) == "text"


def test_an_unknown_code_is_an_unknown_error() -> None:
    assert type(errors.service_error(4711, "text")) is errors.UnknownServiceError


def test_a_code_is_declared_once() -> None:
    with pytest.raises(TypeError, match="both declare code ChecksumError"):
        type("Another", (errors.ServiceError,), {"code": ServerError.ChecksumError})


def test_subclasses_share_the_code_of_their_parent() -> None:
    assert errors.TopicFencedError.code == ServerError.ServiceNotReady
    assert errors.InvalidNamespaceNameError.code == ServerError.InvalidTopicName
    assert errors.NamingError.code == ServerError.ProducerBusy


def test_names_end_in_error_and_have_one_root() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    for kind in kinds:
        if issubclass(kind, BaseException) and kind.__module__ == errors.__name__:
            assert issubclass(kind, errors.PulsarError)
            assert kind.__name__.endswith("Error")
            assert kind.__doc__


def test_a_bad_payload_is_the_peers_fault() -> None:
    assert issubclass(errors.PayloadError, errors.RemoteProtocolError)


def test_what_the_client_says_by_itself_is_no_answer_of_a_broker() -> None:
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.ClientError)
    ]

    assert not any(issubclass(kind, errors.ServiceError) for kind in kinds)
    for kind in kinds:
        assert kind.__name__ in (errors.__doc__ or ""), "the tree in the docstring lacks it"


def test_a_client_that_times_out_raises_pythons_timeout_too() -> None:
    assert issubclass(errors.ClientTimeoutError, TimeoutError)
    assert issubclass(errors.InvalidConfigurationError, errors.ConfigurationError)
