"""What stages share: buying candidates, sampling, judging, training's processes, and the records of all that."""
