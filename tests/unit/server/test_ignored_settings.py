"""ignored_settings: what of Pulsar's names has no effect, and why."""

from __future__ import annotations

from pulsar_py.server.ignored_settings import REFUSED, ignored_settings


def test_each_has_a_reason() -> None:
    assert len(ignored_settings()) > 500
    for name, ignored in ignored_settings().items():
        assert name == ignored.name
        assert name.isidentifier(), name
        assert ignored.reason.endswith("."), name


def test_defaults_and_marks_are_read() -> None:
    threads = ignored_settings()["numHttpServerThreads"]
    assert (threads.default, threads.is_dynamic) == ("8", False)
    assert ignored_settings()["loadBalancerSheddingEnabled"].is_dynamic


def test_what_is_refused_is_known_and_harmless_by_default() -> None:
    for name in REFUSED:
        assert not ignored_settings()[name].is_refused(ignored_settings()[name].default)
        assert ignored_settings()[name].is_refused("true")


def test_others_are_never_refused() -> None:
    assert not ignored_settings()["numIOThreads"].is_refused("7")
