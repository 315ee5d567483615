"""Judging a published benchmark: its cases, what the built-in provider proposes for it, and the page of results."""
