"""Namespaces: bundles, ownership, lookup."""
