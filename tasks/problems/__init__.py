"""Reference programs, where they come from and which of them are held out."""
