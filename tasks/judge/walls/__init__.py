"""What stands between a candidate and the rest of the machine."""
