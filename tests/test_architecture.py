"""The rules of README's "How the code is cut", checked."""

import ast
from pathlib import Path

import pytest
import yaml

from flows.retraining.comparison import CODE
from flows.stages import STAGES
from tasks.params import Params, load_params

# A package may import itself and everything to its left.
LEAVES = [
    *("errors", "durable", "params", "safe_path", "tracking"),
    *("registry_errors", "registry_files", "registry_lock", "registry"),
]
LAYERS = [*LEAVES, "problems", "variants", "judge", "history", "search", "training", "report"]
KNOW_MLFLOW = ("tracking.py", "registry.py")

# Cannot change a result, only where it is computed or how it is reported and resumed.
HARMLESS = {
    Path("flows/ancestors.py"),
    Path("flows/engine.py"),
    Path("flows/following.py"),
    Path("flows/panels/chamber.py"),
    Path("flows/panels/cluster.py"),
    Path("flows/panels/judges.py"),
    Path("flows/panels/panel.py"),
    Path("flows/panels/seats.py"),
    Path("flows/parts/gathering.py"),
    Path("flows/parts/heartbeats.py"),
    Path("flows/parts/journal.py"),
    Path("flows/parts/launching.py"),
    Path("flows/publishing.py"),
    Path("flows/services/server.py"),
    Path("tasks/durable.py"),
    Path("tasks/errors.py"),
    Path("tasks/judge/turnstile.py"),
    Path("tasks/judge/walls/system.py"),
    *Path("tasks/params").glob("*.py"),
    Path("tasks/tracking.py"),
}


def imported(path: Path) -> set[str]:
    """Dotted names a file imports, wherever in the file the import stands."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return names


def code_reached(path: Path, seen: set[Path]) -> set[Path]:
    """Every file of ours that a file imports, directly or not."""
    for name in imported(path):
        if name.split(".")[0] not in {"flows", "tasks"}:
            continue
        for target in (Path(*name.split(".")).with_suffix(".py"), Path(*name.split("."), "__init__.py")):
            if target.exists() and target not in seen:
                seen.add(target)
                code_reached(target, seen)
    return seen


def stages() -> dict:
    return yaml.safe_load(Path("dvc.yaml").read_text())["stages"]


def names_in(spec: dict, kind: str) -> list[str]:
    return [next(iter(entry)) if isinstance(entry, dict) else entry for entry in spec.get(kind, [])]


@pytest.mark.parametrize("path", sorted(Path("tasks").rglob("*.py")), ids=str)
def test_imports_point_left(path):
    layer = path.with_suffix("").parts[1]
    allowed = LAYERS[: LAYERS.index(layer) + 1] if layer in LAYERS else []
    ours = {name.split(".")[1] for name in imported(path) if name.startswith("tasks.")}
    assert ours <= set(allowed), f"{path} may import {allowed}, but imports {sorted(ours)}"


@pytest.mark.parametrize("path", sorted(Path("tasks").rglob("*.py")), ids=str)
def test_tasks_know_nothing_of_the_orchestrator(path):
    assert not {name.split(".")[0] for name in imported(path)} & {"prefect", "dvc", "flows"}


BEHIND = {"benches", "soaks"}


@pytest.mark.parametrize("path", [p for p in sorted(Path("flows").rglob("*.py")) if not BEHIND & set(p.parts)], ids=str)
def test_nothing_needs_a_benchmark_or_a_soak(path):
    assert not {name.split(".")[1] for name in imported(path) if name.startswith("flows.")} & BEHIND


@pytest.mark.parametrize(
    "path",
    [p for p in sorted([*Path("tasks").rglob("*.py"), *Path("flows").rglob("*.py")]) if p.name not in KNOW_MLFLOW],
    ids=str,
)
def test_only_tracking_and_the_registry_know_mlflow(path):
    assert "mlflow" not in {name.split(".")[0] for name in imported(path)}


def test_a_stage_has_one_name_in_five_places():
    sections = set(Params.__dataclass_fields__)
    assert tuple(stages()) == STAGES
    for stage, spec in stages().items():
        assert stage in sections
        assert stage in spec["params"]
        assert spec["cmd"] == f"python -m flows.{stage}"
        assert f"flows/{stage}.py" in spec["deps"]
        outputs = [name for kind in ("outs", "metrics", "plots") for name in names_in(spec, kind)]
        assert all(name.startswith(f"data/{stage}/") for name in outputs)
        assert f'run_stage("{stage}", {stage})' in Path(f"flows/{stage}.py").read_text()


@pytest.mark.parametrize(
    ("program", "listed"),
    [*((stage, stages()[stage]["deps"]) for stage in STAGES), ("retraining/comparison", CODE)],
    ids=[*STAGES, "comparison"],
)
def test_what_a_stage_or_a_comparison_runs_is_listed(program, listed):
    """Otherwise a stale result is kept after the code that made it has changed."""
    # An __init__.py of ours holds a docstring; importing tasks.a.b runs tasks/__init__.py too.
    reached = {path for path in code_reached(Path(f"flows/{program}.py"), set()) if path != Path("tasks/__init__.py")}
    missing = {
        path
        for path in reached - HARMLESS - {Path("flows/__init__.py")}
        if not any(path == dependency or dependency in path.parents for dependency in map(Path, listed))
    }
    assert not missing, f"add to what {program} lists: {sorted(map(str, missing))}"


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_lists_all_the_data_it_reads(stage):
    """Every data/<other stage>/ a stage's code names must be among its deps, and made by an earlier stage."""
    spec = stages()[stage]
    made_earlier = {
        name
        for earlier in STAGES[: STAGES.index(stage)]
        for kind in ("outs", "metrics", "plots")
        for name in names_in(stages()[earlier], kind)
    }
    read = [
        dependency for dependency in spec["deps"] if dependency.startswith("data/") and dependency != "data/problems"
    ]
    assert set(read) <= made_earlier


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_lists_all_the_params_it_uses(stage):
    sections = set(Params.__dataclass_fields__)
    used = {
        node.attr
        for node in ast.walk(ast.parse(Path(f"flows/{stage}.py").read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in sections
        and isinstance(node.value, ast.Attribute | ast.Name)
        and (node.value.attr if isinstance(node.value, ast.Attribute) else node.value.id) == "params"
    }
    assert used <= set(stages()[stage]["params"])


def test_the_params_that_are_committed_load():
    assert load_params().seed == 0
