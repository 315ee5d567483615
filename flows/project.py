"""Where the user stands: the project's folder, if there is one above."""

from pathlib import Path

HISTORY = Path("data/history.duckdb")
"""Within the project's folder."""


def project_folder() -> Path | None:
    """The nearest folder, from the current one upwards, that holds a pipeline and its params; None outside of any."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / "dvc.yaml").exists() and (folder / "params.yaml").exists():
            return folder
    return None
