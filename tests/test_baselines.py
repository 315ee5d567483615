"""Ways of running the reference are candidates like others: right, honest, and timed on devices that can run them."""

import ast
import os
from dataclasses import replace

import pytest

from tasks.errors import MachineError, ProblemError
from tasks.judge.baselines import BASELINES, NEED_CUDA, baseline_candidate, usable_baselines
from tasks.judge.judge import Judge
from tasks.judge.screen import screen
from tasks.judge.verdict import Track
from tests.judge_builders import KERNELS, PARAMS, RIGHT, problem, problem_of, read_problem

UNUSUAL = '''"""A reference."""
from __future__ import annotations
from torch import nn


class Base(nn.Module):
    def forward(self, x):
        return {"twice": x * 2, "rest": [x + 1]}


class Model(Base):
    def __init__(self):
        super(Model, self).__init__()


def get_inputs():
    import torch
    return [torch.randn(32, 32)]
'''
HAS_GPU = os.path.exists("/dev/nvidiactl")


@pytest.mark.parametrize("baseline", BASELINES)
def test_a_baseline_passes_the_screen_and_draws_no_inputs(baseline):
    for of in (problem("linear_relu"), problem_of(UNUSUAL)):
        source = baseline_candidate(of, baseline).source
        assert screen(source).status is None
        assert "get_inputs" not in source
        names = [node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
        assert names[-2:] == ["Model", "ModelNew"]


def test_baselines_of_one_problem_are_distinct_candidates():
    found = [baseline_candidate(problem("linear_relu"), name) for name in BASELINES]
    assert len({candidate.candidate_id for candidate in found}) == len(BASELINES)
    assert [candidate.origin for candidate in found] == [f"baseline:{name}" for name in BASELINES]


def test_an_unknown_baseline_is_refused():
    with pytest.raises(ProblemError, match="unknown baseline 'max_autotune'; there are: eager, compile"):
        baseline_candidate(problem("linear_relu"), "max_autotune")


def test_a_reference_of_unusual_form_is_its_own_baseline():
    of = problem_of(UNUSUAL)
    with Judge(PARAMS) as judge:
        verdict = judge.judge(of, baseline_candidate(of, "eager"), seed=0)
    assert verdict.status in RIGHT, verdict.detail


@pytest.mark.parametrize(
    ("device", "asked", "expected"),
    [
        pytest.param("cpu", None, ("eager", "compile"), id="all of a processor"),
        pytest.param("cuda:1", None, BASELINES, id="all of a GPU"),
        pytest.param("cpu", ["compile"], ("compile",), id="one"),
        pytest.param("cpu", [], (), id="none"),
    ],
)
def test_which_baselines_a_device_can_run(device, asked, expected):
    assert usable_baselines(device, asked) == expected


@pytest.mark.parametrize("name", NEED_CUDA)
def test_a_baseline_that_needs_cuda_is_refused_elsewhere_in_words(name):
    with pytest.raises(MachineError, match=f"{name} cannot be timed on cpu: it needs CUDA; leave it out"):
        usable_baselines("cpu", ["compile", name])


def test_a_name_that_is_no_baseline_is_refused():
    with pytest.raises(ProblemError, match="unknown baseline 'fast'"):
        usable_baselines("cpu", ["fast"])


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="needs a CUDA device")
@pytest.mark.parametrize("name", ["linear_gelu", "add_layer_norm", "conv_relu"])
def test_every_baseline_is_right_on_a_gpu(name):
    of = read_problem(KERNELS / "cuda/problems" / f"{name}.py")
    params = replace(PARAMS, device="cuda:0", timeout_s=300.0, memory_bytes=8 << 30)
    with Judge(params) as judge:
        verdicts = {baseline: judge.judge(of, baseline_candidate(of, baseline), seed=0) for baseline in BASELINES}
    assert {verdict.status for verdict in verdicts.values()} <= set(RIGHT), verdicts
    assert verdicts["cuda_graph"].track in (Track.GRAPH, None)
