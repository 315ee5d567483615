"""Five modules that are no KernelBench problems, through `cuda-l1 optimize` and through the judge."""

import hashlib
import importlib.util
import json
import shutil
import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from flows.cli import main
from tasks.judge.judge import Judge
from tasks.params import JudgeParams
from tasks.search.drop_in import DropIn, drop_in
from tasks.search.gradients import gradient_case
from tasks.search.survey import Survey, survey
from tasks.search.texts import ProblemTexts, problem_texts
from tasks.search.user_file import UserFile, read_user_file
from tasks.variants.rewriting import as_candidate_program, candidate_of
from tests.judge_builders import RIGHT

MODULES = Path(__file__).parent / "modules"
NAMES = ("transformer", "unet", "lstm", "loss", "augmentation")


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(JudgeParams(trials=2, rounds=5, settled_error=0.12)) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the modules, which drop-ins may be written into."""
    return Path(shutil.copytree(MODULES, tmp_path / "modules"))


def prepared(folder: Path, name: str) -> tuple[UserFile, Survey, ProblemTexts, DropIn]:
    """A file with the drop-in of the candidate that computes what it computes, in the form that rewrites start from."""
    file = read_user_file(folder / f"{name}.py")
    facts = survey(file)
    texts = problem_texts(file, facts)
    candidate = candidate_of(texts.shown, as_candidate_program(texts.shown.source), ())
    return file, facts, texts, drop_in(file, facts, candidate, problem_id=texts.judged.problem_id)


def imported(path: Path, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    monkeypatch.syspath_prepend(str(path.parent))
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, path.stem, module)
    specification.loader.exec_module(module)
    return module


def made(module: types.ModuleType, class_name: str) -> torch.nn.Module:
    returned = getattr(module, "example_init", list)()
    kind = getattr(module, class_name)
    return kind(**returned) if isinstance(returned, dict) else kind(*returned)


def called(model: torch.nn.Module, inputs: object) -> list[torch.Tensor]:
    inputs = [inputs] if isinstance(inputs, torch.Tensor) else inputs
    outputs = model(**inputs) if isinstance(inputs, dict) else model(*inputs)
    return _flat(outputs)


def _flat(value: object) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else [each for part in value for each in _flat(part)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", NAMES)
def test_what_would_be_written_is_equal_also_in_its_gradients(folder: Path, name: str, judge: Judge) -> None:
    _, _, texts, found = prepared(folder, name)
    verdict = judge.judge(texts.judged, texts.as_judged(found.judged), seed=0)
    assert verdict.status in RIGHT, verdict.detail
    problem, candidate = gradient_case(texts, found)
    verdict = judge.judge(problem, candidate, seed=0)
    assert verdict.status in RIGHT, verdict.detail


def test_wrong_gradients_would_be_noticed(folder: Path, judge: Judge) -> None:
    _, _, texts, found = prepared(folder, "loss")
    old, new = "super().forward(*inputs", "super().forward(*(each.detach() for each in inputs)"
    detached = replace(found.judged, source=found.judged.source.replace(old, new))
    problem, candidate = gradient_case(texts, replace(found, judged=detached))
    assert judge.judge(problem, candidate, seed=0).status not in RIGHT


@pytest.mark.parametrize("name", NAMES)
def test_state_dicts_load_both_ways_and_the_fast_path_is_taken(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, _, _, found = prepared(folder, name)
    before = imported(file.path, monkeypatch)
    file.path.write_text(found.source)
    after = imported(file.path, monkeypatch)
    old, new = made(before, file.class_name).eval(), made(after, file.class_name).eval()
    new.load_state_dict(old.state_dict(), strict=True)
    inputs = getattr(before, file.inputs_function)()
    with torch.no_grad():
        assert all(map(torch.equal, called(new, inputs), called(old, inputs)))
        assert new._fast.seen.is_judged
        for weight in new.parameters():
            weight.mul_(0.9).add_(0.01)
        old.load_state_dict(new.state_dict(), strict=True)
        assert all(map(torch.equal, called(new, inputs), called(old, inputs)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name if name in ("transformer", "loss") else pytest.param(name, marks=pytest.mark.long) for name in NAMES]
)
def test_optimize_claims_nothing_that_was_not_judged(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "out"
    arguments = ["--provider", "builtin", "--candidates", "1", "--window-s", "0", "--baselines", "eager"]
    status = main(["optimize", str(folder / f"{name}.py"), "--out", str(out), *arguments])
    verdict = json.loads((out / "verdict.json").read_text())
    report = (out / "report.md").read_text()
    written = out / f"{name}.py"
    assert status == (0 if verdict["faster"] else 4)
    assert written.exists() is verdict["faster"]
    if not verdict["faster"]:
        assert "Nothing is written" in report
        assert verdict["speedup_over_eager"] is None
        return
    assert hashlib.sha256(written.read_bytes()).hexdigest() == verdict["drop_in_sha256"]
    rows = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
    judged = next(
        row["verdict"] for row in rows if row["verdict"]["candidate_id"] == verdict["verdict"]["candidate_id"]
    )
    assert judged["status"] == "correct"
    assert verdict["speedup_over_eager"]["low"] > 1
    assert f"{verdict['speedup_over_eager']['median']:.2f}x" in report
    shutil.copy(written, folder / f"{name}.py")
    assert made(imported(folder / f"{name}.py", monkeypatch), verdict["class"]).state_dict() is not None
