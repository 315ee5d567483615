"""What `cuda-l1` can do: one file for each of its commands that is more than a call."""
