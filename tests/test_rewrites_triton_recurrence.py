"""nn.LSTM and nn.GRU with one Triton kernel a step: that they are right, and when they stay as they are."""

import copy
import functools
import random

import pytest
import torch

from tasks.variants.rewrites.graph import compile_forward
from tasks.variants.rewrites.triton_layers import layers_in_triton
from tasks.variants.rewrites.triton_recurrence import recurrence_in_triton
from tasks.variants.rewriting import as_candidate_program, render
from tests.program_builders import defined, first_recipe, outputs, problem, ready, rewritten_once
from tests.triton_stand_in import the_last_is_the_fastest, triton_on_the_processor, use_kernels

pytestmark = pytest.mark.usefixtures("is_capturing")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def network(layer, inputs="torch.randn(3, 18, 7)"):
    """All that a recurrent layer returns, as a model."""
    return problem(
        "out, state = self.layer(x)\nreturn out, state", inputs, init=f"self.layer = nn.{layer}", init_arguments="7"
    )


LSTM = network("LSTM(7, 20, 3)")
LAYERS = [
    "LSTM(7, 20, 3)",
    "LSTM(7, 20, bias=False)",
    "LSTM(7, 36, 2, batch_first=True, bidirectional=True)",
    "GRU(70, 20, 2)",
    "GRU(7, 20, 2, bidirectional=True)",
    "GRU(7, 65, batch_first=True, bias=False)",
]


def with_kernels(source, tile=-1):
    with triton_on_the_processor():
        names = use_kernels(defined.__wrapped__(rewritten_once(source, recurrence_in_triton)))
    names["STEPS"] = (names["STEPS"][tile],)
    return names


def inputs_of(layer):
    return torch.randn(3, 18, layer.input_size)


def states_of(layer, batch):
    """States to begin with, none of them zero."""
    shape = layer.num_layers * (1 + layer.bidirectional), batch, layer.hidden_size
    states = tuple(torch.randn(shape) for _ in range(2))
    return states if isinstance(layer, torch.nn.LSTM) else states[0]


def in_triton(names, layer):
    made = copy.deepcopy(layer)
    made.forward = functools.partial(names["RECURRENT_FORWARDS"][type(layer)], made)
    return made


@torch.no_grad()
def assert_right(names, layer, x, **bounds):
    made, states = in_triton(names, layer), states_of(layer, x.shape[0 if layer.batch_first else 1])
    torch.testing.assert_close(made(x), layer(x), **bounds)
    before = copy.deepcopy(states)
    torch.testing.assert_close(made(x, states), layer(x, states), **bounds)
    torch.testing.assert_close(states, before, rtol=0, atol=0)


def test_on_the_cpu_the_layers_are_what_they_were():
    with triton_on_the_processor():
        found, expected = outputs(LSTM, rewritten_once(LSTM, recurrence_in_triton))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("text", LAYERS)
def test_step_by_step_every_layer_and_state_is_right(text):
    names, layer = with_kernels(network(text)), eval(f"torch.nn.{text}")
    assert_right(names, layer, inputs_of(layer))
    assert list(names["FASTEST"].values()) == [[*names["STEPS"] * 2]]
    assert names["recurrence_kernel"].programs_run


@pytest.mark.parametrize("tile", range(4))
def test_every_tile_is_right(tile):
    names, layer = with_kernels(LSTM, tile), torch.nn.LSTM(7, 40)
    for batch in 70, 130, 17, 1:
        assert_right(names, layer, torch.randn(1, batch, 7))


def test_a_model_is_right_and_its_layers_are_what_they_were_for_whoever_looks():
    names = with_kernels(LSTM)
    model, reference, inputs = ready(LSTM, names)
    with torch.no_grad():
        torch.testing.assert_close(model(*inputs), reference(*inputs))
    assert names["recurrence_kernel"].programs_run
    assert type(model.layer) is torch.nn.LSTM
    assert list(model.state_dict()) == list(reference.state_dict())


def test_several_layers_directions_blocks_of_rows_and_lengths_in_one_call_after_another():
    names, layer = with_kernels(LSTM, tile=1), torch.nn.GRU(7, 20, 2, bidirectional=True)
    made = in_triton(names, layer)
    with torch.no_grad():
        for steps, batch in (3, 70), (1, 70), (5, 2):
            x = torch.randn(steps, batch, 7)
            torch.testing.assert_close(made(x), layer(x))
    assert len(names["FASTEST"]) == 3


@pytest.mark.parametrize("text", ["LSTM(7, 20, 2)", "GRU(7, 20, 2)"])
def test_an_infinite_input_saturates_gates_and_no_more(text):
    names, layer = with_kernels(network(text)), eval(f"torch.nn.{text}")
    x = inputs_of(layer)
    x[1, 2, 3] = float("inf")
    with torch.no_grad():
        assert layer(x)[0].isfinite().all()
        torch.testing.assert_close(in_triton(names, layer)(x), layer(x))


def test_a_forward_that_asks_what_a_layer_is_gets_the_layers_own_class():
    forward = "out = self.layer(x)\nreturn out[0] if type(self.layer) in (nn.LSTM, nn.GRU) else out"
    asking = problem(forward, "torch.randn(3, 18, 7)", init="self.layer = nn.LSTM(7, 20)", init_arguments="7")
    names = with_kernels(asking)
    model, reference, inputs = ready(asking, names)
    with torch.no_grad():
        torch.testing.assert_close(model(*inputs), reference(*inputs))
    assert names["recurrence_kernel"].programs_run


def test_where_there_is_no_room_for_every_step_the_layer_itself_runs():
    names, layer = with_kernels(LSTM), torch.nn.LSTM(7, 20)
    made, x = in_triton(names, layer), inputs_of(layer)
    with torch.no_grad():
        made(x)

        def fails(*_):
            raise torch.OutOfMemoryError

        names["recurrence_run"] = fails
        torch.testing.assert_close(made(x), layer(x))


def test_weights_that_change_in_place_count():
    names, layer = with_kernels(LSTM), torch.nn.GRU(7, 20)
    made, x = in_triton(names, layer), inputs_of(layer)
    with torch.no_grad():
        made(x)
        for one, other in zip(made.parameters(), layer.parameters(), strict=True):
            one.data.mul_(0.5)
            other.data.mul_(0.5)
        torch.testing.assert_close(made(x), layer(x))


@pytest.mark.parametrize(
    ("layer", "inputs"),
    [
        (torch.nn.LSTM(7, 20, proj_size=3), (torch.randn(3, 18, 7),)),
        (torch.nn.LSTM(7, 20), (torch.randn(5, 7),)),
        (torch.nn.GRU(7, 20), (torch.nn.utils.rnn.pack_padded_sequence(torch.randn(5, 2, 7), [5, 3]),)),
        (torch.nn.GRU(7, 20, dtype=torch.float64), (torch.randn(5, 18, 7, dtype=torch.float64),)),
        (torch.nn.GRU(7, 20), (torch.randn(1 << 14, 1, 7),)),
    ],
    ids=["projected", "without a batch", "packed", "other numbers", "more steps than are worth timing"],
)
def test_what_the_kernel_cannot_is_left_to_the_layer(layer, inputs):
    names = with_kernels(LSTM)
    fits = names["fits"]
    names["fits"] = lambda tensors, shapes: tensors[0].dtype is torch.float32 and fits(tensors, shapes)
    with torch.no_grad():
        torch.testing.assert_close(in_triton(names, layer)(*inputs), layer(*inputs))
    assert not names["FASTEST"]


def test_dropout_between_layers_is_left_to_the_layer_while_it_trains():
    names, layer = with_kernels(LSTM), torch.nn.LSTM(7, 20, 2, dropout=0.5)
    made, x = in_triton(names, layer), inputs_of(layer)
    with torch.no_grad():
        made(x)
        assert not names["FASTEST"]
        torch.testing.assert_close(made.eval()(x), layer.eval()(x))
    assert names["FASTEST"]


def test_what_does_not_fit_is_the_layers_own_error():
    names = with_kernels(LSTM)
    made = in_triton(names, torch.nn.GRU(7, 20))
    with torch.no_grad():
        with pytest.raises(RuntimeError, match=r"input\.size"):
            made(torch.randn(3, 18, 8))
        with pytest.raises(RuntimeError, match="hidden"):
            made(torch.randn(3, 18, 7), torch.randn(1, 17, 20))


def test_a_recurrent_model_is_proposed_in_a_graph_beside_kernels_for_its_other_layers():
    assert first_recipe(LSTM)[0] == ("recurrence_in_triton", "compile_and_replay")
    init = "self.rows = nn.Sequential(nn.Linear(size0, 64), nn.ReLU())\nself.layer = nn.GRU(64, 20)"
    mixed = problem("return self.layer(self.rows(x))[0]", "torch.randn(3, 18, 7)", init=init, init_arguments="7")
    assert first_recipe(mixed)[0] == ("layers_in_triton", "recurrence_in_triton", "compile_and_replay")
    program = as_candidate_program(mixed)
    for rewrite in layers_in_triton, recurrence_in_triton:
        program = rewrite.apply(program, random.Random(0))
    with triton_on_the_processor():
        found, expected = outputs(mixed, render(program))
    torch.testing.assert_close(found, expected)


def test_a_forward_that_is_compiled_already_stays_as_it_is():
    program = compile_forward.apply(as_candidate_program(LSTM), random.Random(0))
    assert recurrence_in_triton.apply(program, random.Random(0)) is None


def test_a_model_without_recurrent_layers_or_with_such_names_stays_as_it_is():
    assert rewritten_once(problem("return x + 1", "torch.randn(5)"), recurrence_in_triton) is None
    own = LSTM.replace("nn.LSTM", "LSTM").replace("class M", "class LSTM(nn.LSTM):\n    pass\n\n\nclass M")
    assert rewritten_once(own, recurrence_in_triton) is None
    taken = LSTM.replace("class M", "class lstm_layer(nn.GRU):\n    pass\n\n\nclass M").replace(
        "nn.LSTM(7", "lstm_layer(7"
    )
    assert (
        rewritten_once(taken.replace("return self", "nn.LSTM(7, 7)\n        return self"), recurrence_in_triton) is None
    )


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("text", [*LAYERS[2:4], "LSTM(128, 256, 6, batch_first=True)"])
def test_on_a_gpu_every_tile_is_about_as_exact_as_float32(text, monkeypatch):
    names = defined.__wrapped__(rewritten_once(network(text), recurrence_in_triton))
    layer = eval(f"torch.nn.{text}").cuda()
    made, exact = in_triton(names, layer), copy.deepcopy(layer).double()
    x = inputs_of(layer).cuda()
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    with torch.no_grad():
        truth = exact(x.double())[0]
        own = (layer(x)[0].double() - truth).square().mean().sqrt()
        made(x)
        (key,) = names["FASTEST"]
        for tile in names["STEPS"]:
            names["FASTEST"][key] = [tile] * 2
            assert (made(x)[0].double() - truth).square().mean().sqrt() < 4 * own


@pytest.mark.gpu
@needs_gpu
def test_on_a_gpu_states_that_a_model_moves_there_itself_are_captured_at_the_second_call():
    init = "self.layer = nn.LSTM(7, 20, 3)\nself.start = torch.randn(3, 18, 20)"
    forward = "self.start = self.start.to(x.device)\nreturn self.layer(x, (self.start, self.start))[0]"
    moving = problem(forward, "torch.randn(3, 18, 7)", init=init, init_arguments="7")
    names = defined.__wrapped__(first_recipe(moving)[1])
    names["triton_best_ms"] = names["graph_best_ms"] = the_last_is_the_fastest
    model, reference, inputs = ready(moving, names)
    reference.start = model.start.clone()
    model, reference = model.cuda(), reference.cuda()
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn_like(inputs[0]).cuda()
            torch.testing.assert_close(model(x), reference(x), rtol=1e-4, atol=1e-4)
    assert [made[-1] is not None for form, made in names["GRAPHS"][model].items() if form != "captures"] == [True]
