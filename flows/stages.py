"""The stages in order. Each name stands in five places: flows/, dvc.yaml, params.yaml, data/ and the MLflow run."""

STAGES = ("generate_variants", "filter_variants", "sft", "self_supervised", "contrastive_rl", "evaluate")
