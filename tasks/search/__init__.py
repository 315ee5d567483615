"""The search for a faster program with frozen weights, and the file that it writes for a user."""
