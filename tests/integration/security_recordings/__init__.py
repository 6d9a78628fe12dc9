"""Replays what Apache Pulsar answered to every kind of caller: `recordings/security_recordings.json`."""
