"""Examples that are packed end to end attend as if each were alone; without a GPU only products are faster."""

import copy
from contextlib import ExitStack
from functools import partial
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from tasks.training import acceleration
from tasks.training.acceleration import accelerated, attend_packed, attends_plainly
from tasks.training.loading import place_model
from tests.test_generation import qwen


def plain_kernel(
    query: Tensor, key: Tensor, value: Tensor, starts: Tensor, longest: int, scale: float | None
) -> Tensor:
    """What the kernel of a GPU computes, one example after another."""
    ends = starts.tolist()
    assert longest == max(end - start for start, end in pairwise(ends))
    rows = [
        nn.functional.scaled_dot_product_attention(
            *(states[None, start:end].transpose(1, 2).float() for states in (query, key, value)),
            is_causal=True,
            scale=scale,
            enable_gqa=True,
        )[0].transpose(0, 1)
        for start, end in pairwise(ends)
    ]
    return torch.cat(rows)


def test_packed_examples_attend_to_themselves_alone():
    model = qwen().model.eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.25)  # attention is computed in bfloat16, and wild weights would magnify that
    examples = [torch.arange(7) + 5, torch.arange(12) + 40, torch.arange(3) + 90]
    alone = [model(input_ids=ids[None]).logits[0] for ids in examples]
    attend_packed(model, plain_kernel)
    packed = model(
        input_ids=torch.cat(examples)[None],
        position_ids=torch.cat([torch.arange(len(ids)) for ids in examples])[None],
        cu_seq_lens_q=torch.tensor([0, 7, 19, 22], dtype=torch.int32),
        cu_seq_lens_k=torch.tensor([0, 7, 19, 22], dtype=torch.int32),
        max_length_q=12,
        max_length_k=12,
    ).logits[0]
    assert torch.allclose(packed, torch.cat(alone), atol=2e-3)


@pytest.mark.parametrize(
    ("changes", "is_plain"),
    [
        ({}, True),
        ({"sliding_window": 8}, True),  # which this configuration says not to use
        ({"sliding_window": 8, "use_sliding_window": True}, False),
        ({"layer_types": ["full_attention", "sliding_attention"]}, False),
        ({"attn_logit_softcapping": 50.0}, False),
    ],
    ids=str,
)
def test_the_kernel_is_for_plain_attention_only(changes, is_plain):
    model = qwen().model
    for name, value in changes.items():
        setattr(model.config, name, value)
    assert attends_plainly(model) == is_plain


def test_attention_with_sinks_is_not_plain():
    model = qwen().model
    model.model.layers[0].self_attn.sinks = nn.Parameter(torch.zeros(4))
    assert not attends_plainly(model)


def test_without_a_gpu_the_model_is_left_as_it_is():
    model = qwen().model
    attention = model.config._attn_implementation
    with accelerated(model, packing=True, compiles=True):
        assert model.config._attn_implementation == attention
        assert all("forward" not in vars(module) for module in model.modules())


def test_weights_that_are_not_on_the_gpu_yet_are_accelerated_too(monkeypatch):
    """So it is in all processes but the first, where DeepSpeed puts them there when training begins."""
    model = qwen().model
    attention = model.config._attn_implementation
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(acceleration, "packed_kernel", lambda: plain_kernel)
    with accelerated(model, packing=True, compiles=True):
        assert model.config._attn_implementation not in (attention, "sdpa")
        assert all("forward" in vars(layer) for layer in model.model.layers)
    assert model.config._attn_implementation == attention
    assert all("forward" not in vars(layer) for layer in model.model.layers)


@pytest.fixture
def compile_layers(monkeypatch):
    """Begins what a training does to a model where there is a GPU, with layers compiled by nothing; ends it after."""
    with ExitStack() as stack:

        def begin(model):
            with monkeypatch.context() as with_gpu:
                with_gpu.setattr(torch.cuda, "is_available", lambda: True)
                with_gpu.setattr(torch, "compile", partial(torch.compile, backend="eager"))
                stack.enter_context(accelerated(model, packing=False, compiles=True))
            return stack

        yield begin


def test_layers_are_compiled_once_for_all_whatever_their_hooks_do(compile_layers):
    """DeepSpeed's hooks, which fetch the weights of a layer, have a number of each."""
    model = qwen().model
    seen = []
    for number, layer in enumerate(model.model.layers):
        layer.number = number
        layer.register_forward_pre_hook(lambda module, _: seen.append(f"fetch {module.number}"))
        layer.register_forward_hook(lambda module, *_: seen.append(f"free {module.number}"))
    torch._dynamo.utils.counters.clear()
    compile_layers(model)
    model(input_ids=torch.arange(12)[None] + 5, use_cache=False)
    assert seen == [f"{what} {number}" for number in range(len(model.model.layers)) for what in ("fetch", "free")]
    assert len(model.model.layers) > 1
    assert torch._dynamo.utils.counters["frames"] == {"total": 1, "ok": 1}
    assert not torch._dynamo.utils.counters["graph_break"]


def test_a_layer_with_a_forward_of_its_own_keeps_it(compile_layers):
    """As where accelerate fetches its weights."""
    model = qwen().model
    first, *others = model.model.layers
    first.forward = own = partial(type(first).forward, first)
    ending = compile_layers(model)
    assert first.forward is own
    assert all("forward" in vars(layer) for layer in others)
    ending.close()
    assert first.forward is own
    assert all("forward" not in vars(layer) for layer in others)


def test_a_copy_of_a_model_that_is_trained_has_weights_of_its_own(compile_layers):
    model, ids, entering = qwen().model, torch.arange(12)[None] + 5, {}
    compile_layers(model)
    copied = copy.deepcopy(model)
    for parameter in copied.model.layers.parameters():
        parameter.data.zero_()
    for each in (model, copied):
        each.model.norm.register_forward_pre_hook(lambda norm, given: entering.update({norm: given[0]}))
        each(input_ids=ids, use_cache=False)
    embedded = model.model.embed_tokens(ids)
    assert torch.equal(entering[copied.model.norm], embedded)  # layers of zeros add nothing
    assert not torch.equal(entering[model.model.norm], embedded)


@pytest.mark.parametrize(
    ("has_gpu", "while_training"), [(False, "medium"), (True, "high")], ids=["a processor", "a GPU"]
)
def test_products_are_rounded_while_training_and_not_after(has_gpu, while_training, monkeypatch):
    def fail_in_training() -> None:
        with accelerated(model, packing=False, compiles=False):
            seen.append(torch.get_float32_matmul_precision())
            raise ArithmeticError

    model = qwen().model
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    seen = [torch.get_float32_matmul_precision()]
    with pytest.raises(ArithmeticError):
        fail_in_training()
    assert [*seen, torch.get_float32_matmul_precision()] == ["highest", while_training, "highest"]


def test_a_policy_does_not_let_cudnn_plan_its_attention_for_every_length():
    before = torch.backends.cuda.cudnn_sdp_enabled()
    try:
        torch.backends.cuda.enable_cudnn_sdp(True)
        place_model(qwen().model, None)
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)
