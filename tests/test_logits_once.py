"""A head that computes each logit once gives the loss and the gradients of one that keeps or repeats them."""

import pytest
import torch
from pretrained_builders import pretrained
from torch import Tensor
from trl.kernels import ChunkedLogProbFunction
from trl.trainer import utils as trl_utils

from tasks.training import head
from tasks.training.head import LogProbs, logits_once, rows_at_once
from tasks.training.policy import load_policy
from tasks.training.sft import train_sft
from tests.test_sft import EXAMPLES
from tests.training_builders import policy_params

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
OUTPUTS = ("log_probs", "entropy", "is_top1")


def given(*, tokens: int = 300, words: int = 37, biased: bool = False) -> list[Tensor | None]:
    generator = torch.Generator().manual_seed(0)
    hidden, weight = (torch.randn(rows, 16, generator=generator, requires_grad=True) for rows in (tokens, words))
    bias = torch.randn(words, generator=generator, requires_grad=True) if biased else None
    return [hidden, weight, bias, torch.randint(words, (tokens,), generator=generator)]


def found_by(kind: type[torch.autograd.Function], inputs: list[Tensor | None], *form: float | None) -> list[Tensor]:
    temperature, softcap, scale = form
    log_probs, entropy, _, _, is_top1 = kind.apply(*inputs, temperature, 8, softcap, scale, OUTPUTS)
    leaves = [each for each in inputs if each is not None and each.requires_grad]
    gradients = torch.autograd.grad(-log_probs.sum() / 7, leaves) if leaves else ()
    return [log_probs.detach(), entropy, is_top1.float(), *gradients]


@pytest.mark.parametrize("biased", [False, True], ids=["without a bias", "with one"])
@pytest.mark.parametrize(
    "form",
    [(1.0, None, 1.0), (0.7, None, 1.0), (1.0, 3.0, 1.0), (0.9, 2.0, 0.25)],
    ids=["plain", "hot", "capped", "all"],
)
def test_log_probabilities_and_gradients_are_those_of_trl(form, biased, monkeypatch):
    monkeypatch.setattr(head, "TILE_BYTES", 1)  # several tiles, the last of them smaller
    assert rows_at_once(37) == 128
    expected = found_by(ChunkedLogProbFunction, given(biased=biased), *form)
    for ours, theirs in zip(found_by(LogProbs, given(biased=biased), *form), expected, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_a_frozen_head_has_no_gradient():
    inputs = given()
    inputs[1] = inputs[1].detach()
    expected = found_by(ChunkedLogProbFunction, inputs, 1.0, None, 1.0)
    for ours, theirs in zip(found_by(LogProbs, inputs, 1.0, None, 1.0), expected, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_a_batch_in_which_nothing_is_scored_gives_zeros():
    log_probs, _, _, *gradients = found_by(LogProbs, given(tokens=0), 1.0, None, 1.0)
    assert len(log_probs) == 0
    assert all(not gradient.any() for gradient in gradients)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, needs_gpu])])
@pytest.mark.parametrize("num_tokens", [7, 33_333, 51_234])
def test_gradients_in_sixteen_bits_are_neither_larger_nor_smaller_than_exact_ones(num_tokens, device):
    """A GPU would round the factor of the loss to them, which is wrong by the same 0.1 or 0.2 % everywhere."""
    hidden, weight, _, targets = (each if each is None else each.detach().to(device) for each in given(words=128))
    hidden, weight = hidden.bfloat16().requires_grad_(), weight.bfloat16()
    log_probs, *_ = LogProbs.apply(hidden, weight, None, targets, 1.0, 8, None, 1.0, OUTPUTS)
    (found,) = torch.autograd.grad(-log_probs.sum() / num_tokens, hidden)
    exact = hidden.detach().double().requires_grad_()
    loss = torch.nn.functional.cross_entropy(exact @ weight.double().t(), targets, reduction="sum") / num_tokens
    (expected,) = torch.autograd.grad(loss, exact)
    ratio = (found * expected).sum() / expected.square().sum()
    assert ratio.item() == pytest.approx(1.0, abs=4e-4)


def test_tokens_that_count_differently_are_refused():
    log_probs, *_ = LogProbs.apply(*given(), 1.0, 8, None, 1.0, OUTPUTS)
    with pytest.raises(RuntimeError, match="count differently"):
        (log_probs * torch.arange(300)).sum().backward()


def test_a_tile_has_few_rows_where_there_are_many_words_and_one_group_of_them_at_least():
    assert rows_at_once(151_936) == 1_664
    assert rows_at_once(1 << 31) == 128


def test_trl_uses_it_while_training_and_has_its_own_function_back_after(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(head.kernels, "_use_triton", lambda device: device.type == "cuda")
    inputs = (*given(), 1.0, 8, None, 1.0, OUTPUTS)

    def use_and_fail() -> None:
        with logits_once():
            used.append(type(trl_utils._ChunkedLogProbFunction.apply(*inputs)[0].grad_fn).__name__)
            with torch.no_grad():
                assert trl_utils._ChunkedLogProbFunction.apply(*inputs)[0].grad_fn is None
            raise ArithmeticError

    used: list[str] = []
    with pytest.raises(ArithmeticError):
        use_and_fail()
    assert used == ["LogProbsBackward"]
    assert trl_utils._ChunkedLogProbFunction is ChunkedLogProbFunction


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("packing", [False, True], ids=["padded", "packed"])
def test_on_a_gpu_losses_and_gradients_are_those_that_training_by_trl_comes_to(packing, tmp_path, monkeypatch):
    base = pretrained(tmp_path / "base")

    def rows(name: str) -> list[float]:
        found = train_sft(
            load_policy(base, policy_params()),
            EXAMPLES,
            steps=4,
            batch_size=4,
            learning_rate=1e-3,
            checkpoints=tmp_path / name,
            seed=0,
            packing=packing,
        )
        return [row[key] for row in found for key in ("loss", "grad_norm")]

    once = rows("once")
    monkeypatch.setattr(head, "LogProbs", ChunkedLogProbFunction)
    assert rows("twice") == pytest.approx(once, rel=5e-3)
