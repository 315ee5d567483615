"""What an optimization of a user's module is made of."""
