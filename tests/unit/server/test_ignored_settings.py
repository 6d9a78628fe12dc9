"""ignored_settings: what of Pulsar's names has no effect, and why."""

from __future__ import annotations

from pulsar_py.server.ignored_settings import ignored_settings


def test_each_has_a_reason() -> None:
    assert len(ignored_settings()) > 400
    for name, ignored in ignored_settings().items():
        assert name == ignored.name
        assert name.isidentifier(), name
        assert ignored.reason.endswith("."), name


def test_defaults_and_marks_are_read() -> None:
    threads = ignored_settings()["numHttpServerThreads"]
    assert (threads.default, threads.is_dynamic) == ("8", False)
    assert ignored_settings()["loadBalancerTransferEnabled"].is_dynamic


def test_what_asks_for_a_protection_that_is_not_there_is_refused() -> None:
    for name in ("tlsEnabled", "saslJaasClientAllowedIds", "strictAuthMethod"):
        ignored = ignored_settings()[name]
        assert not ignored.is_refused(ignored.default)
        assert not ignored.is_refused("")
        assert ignored.is_refused("true")


def test_others_are_never_refused() -> None:
    assert not ignored_settings()["numIOThreads"].is_refused("7")
