"""Ways of running the reference are candidates like others: right, honest, and timed on devices that can run them."""

import ast
import os
from collections import namedtuple
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn

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
NAMED_AND_NESTED = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, state, *, scale=1.0, rest=()):
        h, c = state
        return (x + h) * scale, {"c": c + sum(rest)}


def get_inputs():
    x, h, c = torch.randn(3, 8, 8).unbind()
    return {"x": x, "state": (h, c), "scale": 0.5, "rest": [torch.ones(8), 2.0]}
"""
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


class AsIfCaptured:
    """What a CUDA graph does, on a processor: the same steps again, from and to the same places."""

    def __init__(self, way, static):
        self._way, self._static, self.outputs = way, static, way(*static)

    def replay(self):
        leaves = torch.utils._pytree.tree_leaves
        for place, found in zip(leaves(self.outputs), leaves(self._way(*self._static)), strict=True):
            place.copy_(found)


def as_if_captured(model, way, row):
    static = [row_item.clone() if isinstance(row_item, torch.Tensor) else row_item for row_item in row]
    graph = AsIfCaptured(partial(way, model), static)
    return graph, static, graph.outputs


State = namedtuple("State", "h c")
FORMS = {
    "a container by name": lambda model, x, h, c: model(x, state=(h, c)),
    "a container by position": lambda model, x, h, c: model(x, (h, c)),
    "another order and kind": lambda model, x, h, c: model(state=[h, c], scale=3.0, x=x),
    "only a number by name": lambda model, x, h, c: model(x, torch.stack([h, c]), scale=0.5),
    "a tensor by name": lambda model, x, h, c: model(x, state=torch.stack([h, c])),
    "all by position": lambda model, x, h, c: model(x, torch.stack([h, c])),
    "a named tuple": lambda model, x, h, c: model(x, State(h, c)),
    "a whole number": lambda model, x, h, c: model(x, (h, c), scale=1),
    "the same as a float": lambda model, x, h, c: model(x, (h, c), scale=1.0),
    "a parameter": lambda model, x, h, c: model(nn.Parameter(x), (h, c), rest=[]),
    "a mapping": lambda model, x, h, c: model(x, (h, c), rest={1.0: h, 2.0: c}),
    "a container by name beside another": lambda model, x, h, c: model(x, (h, c), rest=[c, 2.0]),
}


def test_a_graph_is_captured_once_for_each_form_of_what_is_named_or_nested():
    names = {}
    exec(baseline_candidate(problem_of(NAMED_AND_NESTED), "cuda_graph").source, names)
    captures = []
    names["ModelNew"]._baseline_captured = lambda *given: captures.append(1) or as_if_captured(*given)
    graphed, plain = names["ModelNew"](), names["Model"]()
    results = []
    for called in [*FORMS.values()] * 3:
        x, h, c = torch.randn(3, 8, 8).unbind()
        results.append((called(graphed, x, h, c), called(plain, x, h, c)))
    for found, expected in results:  # all at the end: an earlier output must not have been written over
        torch.testing.assert_close(found, expected)
    assert len(captures) == len(FORMS)


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="needs a CUDA device")
@pytest.mark.parametrize("name", ["linear_gelu", "add_layer_norm", "conv_relu", None], ids=str)
def test_every_baseline_is_right_on_a_gpu(name):
    of = read_problem(KERNELS / "cuda/problems" / f"{name}.py") if name else problem_of(NAMED_AND_NESTED)
    params = replace(PARAMS, device="cuda:0", timeout_s=300.0, memory_bytes=8 << 30)
    with Judge(params) as judge:
        verdicts = {baseline: judge.judge(of, baseline_candidate(of, baseline), seed=0) for baseline in BASELINES}
    assert {verdict.status for verdict in verdicts.values()} <= set(RIGHT), verdicts
    assert verdicts["cuda_graph"].track in (Track.GRAPH, None)
