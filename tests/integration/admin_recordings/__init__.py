"""Replays what Apache Pulsar's administration answered: `tests/recordings/admin_recordings.json`."""
