"""Benchmarks: `make bench` runs `python -m benchmarks`; see `__main__` for what is measured."""
