"""namespaces."""
