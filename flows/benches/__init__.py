"""Benchmarks: what `make bench-...` runs, and the table over the collection of candidates."""
