"""What goes on for hours and is struck by faults: `make soak`, `make fuzz` and their like."""
