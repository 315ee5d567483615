"""Candidates out of torch.compile: what Inductor emits for a problem, made into programs that run without it."""
