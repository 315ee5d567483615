"""The only code that runs candidates, and what it says about them."""
