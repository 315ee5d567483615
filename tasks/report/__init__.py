"""Statistics, tables, plots and the report page."""
