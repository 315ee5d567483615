"""What the pipeline does: plain Python that never imports an orchestrator."""
