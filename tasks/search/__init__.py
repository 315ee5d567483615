"""The search for a faster program with frozen weights: who proposes candidates, which are looked at again, and drop-ins."""
