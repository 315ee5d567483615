"""What a retraining is made of: problems that arrive, challenger against champion, and what is kept."""
