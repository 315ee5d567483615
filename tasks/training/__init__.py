"""The policy and the three ways it learns."""
