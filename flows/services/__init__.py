"""What a team leaves running on one machine."""
