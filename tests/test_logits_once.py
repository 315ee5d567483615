"""A head that computes each logit once gives the loss and the gradients of one that keeps or repeats them."""

import pytest
import torch
from pretrained_builders import pretrained
from torch import Tensor
from trl.kernels import ChunkedLogProbFunction

from tasks.training import footprint, head
from tasks.training.head import LogProbs, logits_once, rows_at_once
from tasks.training.policy import load_policy
from tasks.training.sft import train_sft
from tests.test_sft import EXAMPLES
from tests.training_builders import policy_params

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


def test_a_tile_has_few_rows_where_there_are_many_words_and_one_group_of_them_at_least():
    assert rows_at_once(151_936) == 3_456
    assert rows_at_once(1 << 31) == 128


def test_what_fits_where_is_calculated_with_the_same_tiles():
    assert footprint._TILE_BYTES == head.TILE_BYTES


def test_trl_gets_its_own_function_back():
    usual = head.trl_utils._ChunkedLogProbFunction
    with pytest.raises(RuntimeError, match="anything"), logits_once():
        raise RuntimeError("anything")
    assert head.trl_utils._ChunkedLogProbFunction is usual is ChunkedLogProbFunction


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("packing", [False, True], ids=["padded", "packed"])
def test_on_a_gpu_training_comes_to_the_losses_that_trl_comes_to(packing, tmp_path, monkeypatch):
    base = pretrained(tmp_path / "base")

    def losses(name: str) -> list[float]:
        rows = train_sft(
            load_policy(base, policy_params()),
            EXAMPLES,
            steps=4,
            batch_size=4,
            learning_rate=1e-3,
            checkpoints=tmp_path / name,
            seed=0,
            packing=packing,
        )
        return [row["loss"] for row in rows]

    once = losses("once")
    monkeypatch.setattr(head, "LogProbs", ChunkedLogProbFunction)
    assert losses("twice") == pytest.approx(once, rel=2e-3)
