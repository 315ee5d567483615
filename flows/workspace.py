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

from tasks.errors import CudaL1Error, MachineError, ParamsError
from tasks.params import apply_profile, load_params, parse_yaml, read_document, write_yaml

PARTS = ("dvc.yaml", "pyproject.toml", ".dvcignore", "flows", "tasks", "data/problems")
NO_SCM = "no_scm = true"  # says of a folder that it is a workspace: the project has git
DVC_CONFIG = f"[core]\n    {NO_SCM}\n    analytics = false\n    check_update = false\n"


def make_workspace(folder: Path, *, profile: str | None = None, changes: dict[str, Any] | None = None) -> Path:
    """Copy code and problems, write params.yaml, and leave everything else in the folder as it is.

    So a second call with the same arguments keeps finished stages, and `dvc repro` there continues.

    Args:
        profile: name under "profiles" in params.yaml, laid over the values.
        changes: dotted key -> value, such as {"sft.steps": 100}, laid over that. A policy.model that is a folder,
            seen from here, stays that folder.

    Raises:
        ParamsError: if the profile, a key or a value is refused.
        MachineError: if the folder is the project's or somebody's own, or cannot be made.
    """
    _require_ours(folder)
    document = read_document(Path("params.yaml"))
    document = apply_profile(document, profile) if profile else {k: v for k, v in document.items() if k != "profiles"}
    for key, value in (changes or {}).items():
        _set(document, key, _as_seen_from_anywhere(value) if key == "policy.model" else value)
    try:
        (folder / ".dvc").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(f"no workspace can be made in {folder}: {error}") from error
    # First of all: whatever ends the rest, the same command knows the folder again.
    (folder / ".dvc" / "config").write_text(DVC_CONFIG)
    proposed = folder / "params.yaml.proposed"
    proposed.write_text(write_yaml(document))
    load_params(proposed)
    proposed.replace(folder / "params.yaml")
    for part in PARTS:
        source, target = Path(part), folder / part
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy2(source, target)
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
            changes[key] = parse_yaml(value)
        except yaml.YAMLError as error:
            raise ParamsError(f"--set {pair!r}: the value is no YAML: {error}") from error
    return changes


def _set(document: dict[str, Any], dotted: str, value: Any) -> None:
    *parents, last = dotted.split(".")
    if dotted.split(".")[0] == "profiles":
        raise ParamsError(f"{dotted} cannot be set: a workspace has no profiles")
    section: Any = document
    for depth, name in enumerate(parents, start=1):
        section = section.setdefault(name, {})  # load_params knows which sections and keys there may be
        if not isinstance(section, dict):
            above = ".".join(parents[:depth])
            remedy = f'. Set it whole: {above}={{"{dotted.removeprefix(f"{above}.")}":...}}' if section is None else ""
            shown = "null" if section is None else repr(section)
            raise ParamsError(f"{dotted} cannot be set: {above} is {shown}, which has no keys{remedy}")
    section[last] = value


def _as_seen_from_anywhere(model: Any) -> Any:
    return str(Path(model).resolve()) if isinstance(model, str) and Path(model).is_dir() else model


def _require_ours(folder: Path) -> None:
    place = folder.resolve()
    if place == Path.cwd() or any(place.is_relative_to(Path(part).resolve()) for part in PARTS):
        raise MachineError(f"{folder} belongs to the project itself; choose a folder such as work/mine")
    if folder.exists() and not folder.is_dir():
        raise MachineError(f"{folder} is a file; a workspace is a folder")
    config = folder / ".dvc" / "config"
    if not folder.exists() or (config.is_file() and NO_SCM in config.read_text(errors="replace")):
        return
    held = sorted(path.name for path in folder.iterdir())
    if place.is_relative_to(Path("work").resolve()):
        # All that is ours, and a workspace may be around others: work/bench is around those of `make bench-learning`.
        held = [part for part in PARTS if (folder / part).exists()]
    if held:
        named = ", ".join([*held[:3], *(["..."] if held[3:] else [])])
        raise MachineError(f"{folder} is no workspace and holds {named}; choose a new or an empty folder")


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
