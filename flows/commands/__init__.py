"""What `cuda-l1` can do: the commands that are more than a call, and what they keep or rebuild."""
