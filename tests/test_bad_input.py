"""What a user gets wrong is told in words, all of it at once, by the command that the user gave."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from flows.engine import run_stage
from flows.self_supervised import self_supervised
from flows.sft import sft
from tests.stage_runs import (
    CLOSED,
    candidate_rows,
    run,
    said_no,
    workspace,
    write_generated,
    write_problem,
    write_rows,
    write_taught,
)
from tests.training_builders import SCALED

pytestmark = pytest.mark.slow

STAGES = {"sft": sft, "self_supervised": self_supervised}


def edit_params(root: Path, changes: dict[str, dict[str, object]]) -> None:
    document = yaml.safe_load((root / "params.yaml").read_text())
    for section, values in changes.items():
        document[section] = document.get(section, {}) | values
    (root / "params.yaml").write_text(yaml.safe_dump(document))


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Requires that a stage refuses a project in words of ours, in this process; returns all that it said.

    Stages that train take seconds to import what they train with, and other tests here run one as the user does.
    """

    def refused(root: Path, name: str, *words: str) -> str:
        monkeypatch.chdir(root)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", CLOSED)
        monkeypatch.delenv("PREFECT_API_URL", raising=False)
        with pytest.raises(SystemExit) as ended:
            run_stage(name, STAGES[name])
        heard = capsys.readouterr()
        said = heard.out + heard.err
        assert ended.value.code == 1, said
        assert "Traceback" not in said
        assert [word for word in words if word not in said] == [], said
        return said

    return refused


def test_all_mistakes_in_params_are_told_at_once_with_dotted_paths(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    mistakes = {
        "judge": {"trails": 3, "rounds": "nine"},
        "policy": {"hidden_size": 62, "completion_tokens": 832},
        "problems": {"folders": ["problems", "problems"]},
        "sft": {"exemplar_share": 1.5, "steps": 0},
        "stf": {"steps": 3},
    }
    edit_params(root, mistakes)
    result = run(root, "flows.generate_variants")
    said_no(
        result,
        "8 mistake(s)",
        "  stf: unknown key",
        *(f"  {s}.{k}: " for s in mistakes for k in mistakes[s] if s != "stf"),
    )
    assert "must be a multiple of twice the 4 heads (got 62)" in result.stderr
    assert "must be less than the 832 context_tokens (got 832)" in result.stderr


def test_the_compiler_is_refused_where_nothing_runs_on_the_cpu(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    edit_params(root, {"judge": {"device": "cuda:0"}, "generate_variants": {"providers": ["builtin", "compiler"]}})
    said_no(
        run(root, "flows.generate_variants"), "generate_variants.providers names compiler", "judge.device is cuda:0"
    )


def test_all_problem_files_that_cannot_be_used_are_told_at_once(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    bad = {
        "level1/unparsed": ("class Model(:\n", "does not parse"),
        "level1/lacking": ("class Model: ...\n", "lacks get_inputs"),
        "level1/latin": (b"# caf\xe9\n", "'utf-8' codec"),
        "level2/empty": ("", "lacks Model, get_inputs"),
        "stray": ("class Model: ...\n", "is in no level folder"),
    }
    for name, (source, _) in bad.items():
        write_problem(root, name, source)
    words = [f"problems/{name}.py: " for name in bad] + [said for _, said in bad.values()]
    said_no(run(root, "flows.generate_variants"), "5 mistake(s)", *words)
    said_no(run(root, "flows.cli", "problems"), "5 mistake(s)", *words)


def test_a_problem_that_only_fails_when_it_runs_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    write_problem(
        root,
        "level1/failing",
        "import torch\n\nModel = torch.nn.ReLU\n\n\ndef get_inputs():\n    return torch.ones(no)\n",
    )
    rows = candidate_rows()[:1]
    write_generated(root, [rows[0], rows[0] | {"problem_id": "level1/failing"}])
    result = run(root, "flows.filter_variants")
    assert result.returncode == 0, result.stderr
    assert "level1/failing cannot be judged: the reference fails" in result.stderr
    assert "NameError: name 'no' is not defined" in result.stderr
    verdicts = (root / "data/filter_variants/verdicts.jsonl").read_text().splitlines()
    assert [json.loads(line)["status"] == "bad_problem" for line in verdicts] == [False, True]


def test_a_missing_model_is_named_with_the_key_to_correct(tmp_path: Path) -> None:
    root = workspace(tmp_path, policy__model="./models/missing")
    write_taught(root)
    said_no(run(root, "flows.sft"), "PolicyError: no model at models/missing", "policy.model in params.yaml")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param('{"problem_id": "level1/sca', 'no JSON object: b\'{"problem_id": "level1/sca\'', id="half a line"),
        pytest.param('{"problem_id": "level1/scaled"}\n', "not a candidate: KeyError('source')", id="half a record"),
    ],
)
def test_a_damaged_output_of_an_earlier_stage_is_named_with_the_remedy(tmp_path: Path, line: str, said: str) -> None:
    root = workspace(tmp_path)
    path = root / "data/generate_variants/candidates.jsonl"
    write_generated(root, candidate_rows())
    with path.open("a") as file:
        file.write(line)
    said_no(run(root, "flows.filter_variants"), "data/generate_variants/candidates.jsonl", said, "delete the file")


def test_a_truncated_policy_is_named_with_the_remedy(tmp_path: Path, refused: Callable[..., str]) -> None:
    from tasks.training.policy import save_policy
    from tests.training_builders import policy

    root = workspace(tmp_path)
    write_taught(root)
    write_rows(root / "data/filter_variants/verdicts.jsonl", [])
    save_policy(policy(), root / "data/sft/policy")
    weights = root / "data/sft/policy/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    refused(root, "self_supervised", "PolicyError: the model 'data/sft/policy' cannot be loaded", "dvc repro")


def test_an_output_that_is_missing_says_what_makes_it(tmp_path: Path) -> None:
    said_no(
        run(workspace(tmp_path), "flows.sft"), "data/filter_variants/taught.jsonl is missing", "`dvc repro` makes it"
    )


def test_variants_of_which_none_may_be_learnt_from_are_told_with_the_remedy(
    tmp_path: Path, refused: Callable[..., str]
) -> None:
    root = workspace(tmp_path)
    write_rows(root / "data/filter_variants/taught.jsonl", [])
    refused(
        root,
        "sft",
        "TrainingError: there is nothing to learn from: no candidate was correct and as fast as filter_variants",
        "generate_variants.max_per_problem",
    )


def test_programs_that_are_all_too_long_to_be_taught_are_told_with_the_key_to_raise(
    tmp_path: Path, refused: Callable[..., str]
) -> None:
    root = workspace(tmp_path, policy__completion_tokens=16)
    write_taught(root)
    refused(
        root,
        "sft",
        "TrainingError: no program that may be taught fits policy.completion_tokens, which is 16; raise it",
    )


def test_a_reference_that_no_prompt_has_room_for_is_named_before_anything_is_trained(
    tmp_path: Path, refused: Callable[..., str]
) -> None:
    root = workspace(tmp_path, sft__steps=10_000)
    write_taught(root)
    write_problem(root, "level1/long", SCALED.replace("out = ", "out = " + "0.0 + " * 900))
    words = "PolicyError: the reference of level1/long takes ", "leaves only ", "raise policy.context_tokens"
    assert "fine-tuning" not in refused(root, "sft", *words)
