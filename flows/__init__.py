"""When and where the pipeline runs: one flow per stage, the chain of stages, the command line."""
