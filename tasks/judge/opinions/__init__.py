"""Second opinions on a candidate: never verdicts."""
