"""From a program's text to C: what its tensors look like, which expressions C can compute, and the loops for them."""
