from __future__ import annotations

from pulsar_py.server.handlers.settings import ConnectionSettings


def test_frames_may_be_ten_kibibytes_longer_than_messages() -> None:
    assert ConnectionSettings(max_message_bytes=1000).max_frame_bytes == 11_240
