"""Prototypes: what the product does not have, built as far as figures need it."""
