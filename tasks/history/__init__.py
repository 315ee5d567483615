"""The append-only record of everything ever judged."""
