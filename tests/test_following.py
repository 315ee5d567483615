"""The command for the other machines of a team says what is wrong with how it is called, in words."""

from pathlib import Path

import pytest

from tests.stage_runs import run, said_no, workspace

TWO = {"engine__nodes": 2, "engine__address": "node-0:29400"}


@pytest.mark.parametrize(
    ("changes", "arguments", "words"),
    [
        pytest.param({}, ["--node", "1"], ("engine.nodes is 1", "set it and engine.address"), id="one machine"),
        pytest.param(TWO, ["--node", "2"], ("--node must be 1 to 1", "not 2"), id="too large a number"),
        pytest.param(TWO, ["--node", "0"], ("--node must be 1 to 1", "the stage itself runs on node 0"), id="0"),
        pytest.param(TWO, [], ("--node must be 1 to 1", "not None"), id="no number"),
    ],
)
def test_a_node_that_there_is_not_is_wrong_usage(tmp_path: Path, changes, arguments, words) -> None:
    said_no(run(workspace(tmp_path, **changes), "flows.following", *arguments), "usage:", *words, status=2)


def test_mistakes_in_params_are_told_without_a_traceback(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    params = (root / "params.yaml").read_text()
    (root / "params.yaml").write_text(params.replace("seed: 0", "seed: none"))
    said_no(run(root, "flows.following", "--node", "1"), "ParamsError: params.yaml has 1 mistake(s)", "seed: ")


def test_processes_that_fail_are_told_without_a_traceback(tmp_path: Path) -> None:
    root = workspace(tmp_path, **TWO)
    code = root / "flows" / "following.py"
    code.write_text(code.read_text().replace("let_blocks_of_memory_grow()\n    import torch", "sys.exit(3)"))
    said_no(run(root, "flows.following", "--node", "1"), "MachineError: processes of node 1 failed", "{1: 3}")
