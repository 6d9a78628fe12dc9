"""Connections of clients: bytes to commands to handlers, and back."""
