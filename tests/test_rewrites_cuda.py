"""Rewrites for a GPU: what they apply to, that their texts stand alone and, on the CPU, compute as the reference."""

import random

import libcst as cst
import pytest
import torch

from flows.optimizing.providers import rewriting
from tasks.problems.problem import Problem, Split
from tasks.variants.recipes import RecipeProvider
from tasks.variants.rewrites import CUDA_REWRITES, REWRITES, rewrites_for
from tasks.variants.rewrites.cuda_graph import compile_and_replay, replay_as_graph
from tasks.variants.rewrites.cuda_layers import (
    benchmark_convolutions,
    compile_forward_replayed,
    compile_forward_tuned,
    keep_channels_last,
)
from tasks.variants.rewriting import as_candidate_program, render
from tests.program_builders import LINEAR, defined, outputs, problem, rewritten

PICTURES = problem(
    "return torch.relu(self.norm(self.conv(x)))",
    "torch.randn(2, 4, 9, 9)",
    init="self.conv = nn.Conv2d(size0, 8, 3, padding=1)\nself.norm = nn.BatchNorm2d(8)",
    init_arguments="4",
)
VOLUMES = problem(
    "return self.conv(x)", "torch.randn(1, 2, 5, 5, 5)", init="self.conv = nn.Conv3d(size0, 4, 3)", init_arguments="2"
)
SCALED_VOLUMES = problem(
    "return self.conv(x) * self.scale",
    "torch.randn(1, 2, 5, 5, 5)",
    init="self.conv = nn.Conv3d(size0, 4, 3)\nself.scale = nn.Parameter(torch.rand(4, 1, 1, 1))",
    init_arguments="2",
)
TWO_INPUTS = problem("return a @ b, a.sum()", "torch.randn(4, 5), torch.randn(5, 3)", arguments="a, b")
RUNNABLE_HERE = [
    (replay_as_graph, LINEAR),
    (replay_as_graph, PICTURES),
    (benchmark_convolutions, PICTURES),
    (keep_channels_last, PICTURES),
    (keep_channels_last, VOLUMES),
    (keep_channels_last, SCALED_VOLUMES),
]


@pytest.mark.parametrize(("rewrite", "source"), RUNNABLE_HERE, ids=lambda value: getattr(value, "name", ""))
def test_a_candidate_for_a_gpu_computes_the_same_on_the_cpu(rewrite, source):
    candidate = rewritten(source, rewrite)
    assert candidate is not None
    torch.testing.assert_close(*outputs(source, candidate))


def test_a_capture_wraps_whatever_was_made_before_it_and_nothing_wraps_it():
    program = as_candidate_program(PICTURES)
    for rewrite in (keep_channels_last, benchmark_convolutions, replay_as_graph):
        program = rewrite.apply(program, random.Random(0))
        assert program is not None
    torch.testing.assert_close(*outputs(PICTURES, render(program)))
    further = [each.name for each in rewrites_for("cuda:0") if each.group != "faults" and _applies(each, program)]
    assert further == []


def _applies(rewrite, program: cst.Module) -> bool:
    changed = rewrite.apply(program, random.Random(0))
    return changed is not None and changed.code != program.code


def test_a_capture_keeps_outputs_of_several_tensors_and_gradients():
    candidate = rewritten(TWO_INPUTS, replay_as_graph)
    assert candidate is not None
    model = defined(candidate)["ModelNew"]()
    a, b = torch.randn(4, 5, requires_grad=True), torch.randn(5, 3)
    product, total = model(a, b=b)
    (product.sum() + total).backward()
    assert torch.equal(product.detach(), a.detach() @ b)
    assert a.grad is not None


@pytest.mark.parametrize(
    ("rewrite", "lines"),
    [
        (compile_forward_tuned, ['    @torch.compile(mode="max-autotune-no-cudagraphs")\n    def forward']),
        (compile_forward_replayed, ['    @copied\n    @torch.compile(mode="reduce-overhead")\n    def forward']),
        (
            compile_and_replay,
            ["class PlainModel(nn.Module)", "graph_compiled = torch.compile(PlainModel.forward)", "graph.replay()"],
        ),
        (benchmark_convolutions, ["    @benchmarked\n    def forward"]),
        (keep_channels_last, ["x = x.contiguous(memory_format=torch.channels_last)", "layer.to(memory_format="]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_each_form_is_written_as_people_write_it(rewrite, lines):
    candidate = rewritten(PICTURES, rewrite)
    assert candidate is not None
    compile(candidate, "candidate", "exec")
    assert all(line in candidate for line in lines)


@pytest.mark.parametrize(
    ("rewrite", "source"),
    [
        (benchmark_convolutions, LINEAR),
        (keep_channels_last, LINEAR),
        (keep_channels_last, PICTURES.replace("nn.BatchNorm2d(8)", "nn.Conv3d(8, 8, 1)")),
        (compile_and_replay, LINEAR.replace("    def forward", "    @torch.compile\n    def forward")),
        (replay_as_graph, f"class PlainModel:\n    pass\n\n\n{LINEAR.replace('self.linear(x)', 'PlainModel()')}"),
    ],
    ids=["no convolution", "no pictures", "pictures and volumes", "compiled before", "a name that is taken"],
)
def test_what_a_rewrite_is_not_for_it_leaves_alone(rewrite, source):
    assert rewritten(source, rewrite) is None


def test_a_forward_that_is_not_to_be_compiled_stays_so_in_a_graph():
    source = LINEAR.replace("    def forward", "    @torch.compiler.disable\n    def forward")
    candidate = rewritten(source, replay_as_graph)
    assert candidate is not None
    assert "    @torch.compiler.disable\n    def forward" in candidate
    assert "graph_compiled" not in candidate


def test_what_else_decorates_a_forward_is_not_lost_by_compiling_it():
    source = LINEAR.replace("    def forward", "    @torch.no_grad()\n    def forward")
    for rewrite in (compile_forward_tuned, compile_and_replay):
        assert rewritten(LINEAR, rewrite) is not None
        assert rewritten(source, rewrite) is None


def test_a_gpu_gets_no_c_and_the_cpu_nothing_for_a_gpu():
    names = [each.name for each in (*REWRITES, *CUDA_REWRITES)]
    assert len(set(names)) == len(names)
    assert rewrites_for("cpu") == REWRITES
    assert {each.name for each in rewrites_for("cuda:0")} >= {each.name for each in CUDA_REWRITES}
    assert "kernel" not in {each.group for each in rewrites_for("cuda:1")}


def test_recipes_come_in_one_order_and_each_text_once():
    pictures = Problem(problem_id="level1/1", level=1, family="any", split=Split.TRAIN, source=PICTURES)
    runs = [list(RecipeProvider("cuda").candidates(pictures, seed=0)) for _ in range(2)]
    assert [each.source for each in runs[0]] == [each.source for each in runs[1]]
    assert len({each.candidate_id for each in runs[0]}) == len(runs[0]) > 3
    assert ("compile_and_replay",) in {each.recipe for each in runs[0]}


def test_less_to_compute_comes_before_all_else():
    source = problem("return torch.diag(x) @ y", "torch.randn(8), torch.randn(8, 9)", arguments="x, y")
    asked = Problem(problem_id="level1/1", level=1, family="any", split=Split.TRAIN, source=source)
    first, *others = [each.recipe for each in RecipeProvider("cuda").candidates(asked, seed=0)]
    assert first == ("broadcast_diagonal", "compile_and_replay")
    assert {("compile_and_replay",), ("broadcast_diagonal",), ("broadcast_diagonal", "replay_as_graph")} < set(others)


def test_convolutions_are_not_compiled_at_first():
    asked = Problem(problem_id="level1/1", level=1, family="any", split=Split.TRAIN, source=PICTURES)
    first, second, *_ = [each.recipe for each in RecipeProvider("cuda").candidates(asked, seed=0)]
    assert first == ("call_layers_directly", "benchmark_convolutions", "replay_as_graph")
    assert second == ("call_layers_directly", "compile_and_replay")


def test_an_optimization_on_a_gpu_begins_with_a_whole_recipe():
    asked = Problem(problem_id="level1/1", level=1, family="any", split=Split.TRAIN, source=PICTURES)
    first, *others = (each.propose([]) for each in rewriting(asked, seed=0, device="cuda:0"))
    assert first.recipe == ("call_layers_directly", "benchmark_convolutions", "replay_as_graph")
    assert others
    assert all(len(each.recipe) == 1 for each in others)
    on_a_processor = [each.propose([]) for each in rewriting(asked, seed=0, device="cpu")]
    assert len(on_a_processor) == len(others)
