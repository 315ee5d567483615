"""The shape of history.duckdb: tables, which only migrations change, and what is laid over them.

Macros, summaries and views hold nothing of their own: edit them freely, the next append replaces those of the file.
"""

from tasks.history.macros import MACROS, TABLE_MACROS
from tasks.history.migrations import MIGRATIONS
from tasks.history.statistics import STATISTICS_VIEWS
from tasks.history.summaries import SUMMARIES
from tasks.history.views import ROW_VIEWS

__all__ = ["MACROS", "MIGRATIONS", "STORAGE_VERSION", "SUMMARIES", "TABLE_MACROS", "VIEWS"]

STORAGE_VERSION = "v1.5.0"
"""The oldest DuckDB that can open the file, so that the plain shell of that line can."""

VIEWS = ROW_VIEWS | STATISTICS_VIEWS
