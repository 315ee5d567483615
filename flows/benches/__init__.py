"""Benchmarks: what `make bench-...` runs."""
