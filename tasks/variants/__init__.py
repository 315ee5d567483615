"""Candidates, the prompts that ask for them and the providers that make them."""
