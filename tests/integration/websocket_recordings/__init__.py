"""Dialogs on WebSocket that Apache Pulsar held, and a player that holds them with our broker."""
