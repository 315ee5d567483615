"""A copy of the project in a folder of its own, under other params: for smoke runs, benchmarks and fault tests.

python -m flows.workspace work/smoke --profile smoke --set seed=1
cd work/smoke && dvc repro
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tasks.errors import CudaL1Error, ParamsError
from tasks.params import apply_profile, load_params, read_document

PARTS = ("dvc.yaml", "pyproject.toml", ".dvcignore", "flows", "tasks", "data/problems")
DVC_CONFIG = "[core]\n    no_scm = true\n    analytics = false\n    check_update = false\n"


def make_workspace(folder: Path, *, profile: str | None = None, changes: dict[str, Any] | None = None) -> Path:
    """Copy code and problems, write params.yaml, and leave everything else in the folder as it is.

    So a second call with the same arguments keeps finished stages, and `dvc repro` there continues.

    Args:
        profile: name under "profiles" in params.yaml, laid over the values.
        changes: dotted key -> value, such as {"sft.steps": 100}, laid over that.

    Raises:
        ParamsError: if the profile, a key or a value is refused.
    """
    document = read_document(Path("params.yaml"))
    document = apply_profile(document, profile) if profile else {k: v for k, v in document.items() if k != "profiles"}
    for key, value in (changes or {}).items():
        _set(document, key, value)
    folder.mkdir(parents=True, exist_ok=True)
    proposed = folder / "params.yaml.proposed"
    proposed.write_text(yaml.safe_dump(document, sort_keys=False))
    load_params(proposed)
    proposed.replace(folder / "params.yaml")
    for part in PARTS:
        source, target = Path(part), folder / part
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy2(source, target)
    (folder / ".dvc").mkdir(exist_ok=True)
    (folder / ".dvc" / "config").write_text(DVC_CONFIG)
    return folder


def changes_of(pairs: Sequence[str]) -> dict[str, Any]:
    """Dotted keys and their values, from texts such as "sft.steps=100".

    Raises:
        ParamsError: if a text is no such pair, or its value no YAML.
    """
    changes = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise ParamsError(f"--set {pair!r} is no KEY=VALUE, such as sft.steps=100")
        try:
            changes[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ParamsError(f"--set {pair!r}: the value is no YAML: {error}") from error
    return changes


def _set(document: dict[str, Any], dotted: str, value: Any) -> None:
    *parents, last = dotted.split(".")
    section: Any = document
    for name in parents:
        section = section.get(name) if isinstance(section, dict) else None
    if not isinstance(section, dict):
        raise ParamsError(f"params.yaml has no section for {dotted!r}")
    section[last] = value  # load_params knows which keys there may be


def main() -> None:
    """Parse the command line, make the workspace and say what to do in it."""
    parser = argparse.ArgumentParser(description="Copy the project into a folder of its own, under other params.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--profile", help="a name under profiles: in params.yaml")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="such as sft.steps=100")
    arguments = parser.parse_args()
    try:
        make_workspace(arguments.folder, profile=arguments.profile, changes=changes_of(arguments.set))
    except CudaL1Error as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
