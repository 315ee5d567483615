"""A batch that does not fit into memory is computed in parts, to the same gradient."""

from functools import partial
from unittest.mock import Mock

import pytest
import torch
from trl import GRPOTrainer

from tasks.errors import MachineError, TrainingError
from tasks.params import EngineParams
from tasks.training import grpo_trainer, team
from tasks.training.generation import Sampler, Written
from tasks.training.grpo_trainer import ContrastiveTrainer
from tasks.training.loading import on_gpu, place_model
from tasks.training.policy import Policy
from tasks.training.sampling import sample
from tests import test_sft
from tests.test_grpo import talkative, train
from tests.training_builders import policy

pytestmark = pytest.mark.usefixtures("full_precision")


def weights(made: Policy) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in made.model.parameters()]


def small_memory(made: Policy, rows: int, *, in_backward: bool = False) -> Policy:
    """A policy whose model cannot train on more rows at once."""

    def refuse(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    def on_embedded(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        if torch.is_grad_enabled() and output.requires_grad and len(output) > rows:
            output.register_hook(refuse) if in_backward else refuse()

    made.model.get_input_embeddings().register_forward_hook(on_embedded)
    return made


@pytest.mark.parametrize("in_backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("updates", [1, 2], ids=["one update", "two updates"])
def test_a_group_that_does_not_fit_is_done_in_parts_to_the_same_gradient(tmp_path, caplog, in_backward, updates):
    whole, tight = talkative(), small_memory(talkative(), 1, in_backward=in_backward)
    expected, _ = train(tmp_path / "whole", made=whole, updates_per_step=updates, steps=2)
    rows, _ = train(tmp_path / "tight", made=tight, updates_per_step=updates, steps=2)
    for one, other in zip(rows, expected, strict=True):
        assert one["grad_norm"] == pytest.approx(other["grad_norm"], rel=1e-4)
        assert one["reward"] == other["reward"]
        assert one["rows_at_once"] == 1
        assert "rows_at_once" not in other
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(weights(tight), weights(whole), strict=True))
    assert "4 rows do not fit into memory" in caplog.text
    assert "2 rows do not fit into memory" in caplog.text


def test_parts_that_params_ask_for_have_the_same_gradient(tmp_path):
    expected, _ = train(tmp_path / "whole", steps=2)
    rows, _ = train(tmp_path / "parted", micro_batch_size=3, steps=2)
    for one, other in zip(rows, expected, strict=True):
        assert one["grad_norm"] == pytest.approx(other["grad_norm"], rel=1e-4)
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-6)


def test_a_batch_of_examples_that_does_not_fit_is_done_in_parts_to_the_same_gradient(tmp_path):
    expected, _ = test_sft.train(tmp_path / "whole")
    rows, _ = test_sft.train(tmp_path / "tight", made=small_memory(policy(), 3, in_backward=True))
    for one, other in zip(rows, expected, strict=True):
        assert one["rows_at_once"] == 2
        assert one["grad_norm"] == pytest.approx(other["grad_norm"], rel=1e-4)
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-4)


def test_a_single_row_that_does_not_fit_ends_training_with_what_to_change(tmp_path):
    with pytest.raises(TrainingError, match=r"update 1: 1 row\(s\) do not fit.*Lower policy\.context_tokens"):
        test_sft.train(tmp_path, made=small_memory(policy(), 0))


def test_halving_twice_in_the_last_batch_of_an_update_keeps_the_earlier_ones(tmp_path, monkeypatch):
    expected, _ = train(tmp_path / "whole", steps=1)
    compute_loss = GRPOTrainer.compute_loss

    def refuse_last(trainer, model, inputs, *others, **named):
        if trainer._step % 2 and len(inputs["prompt_ids"]) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return compute_loss(trainer, model, inputs, *others, **named)

    monkeypatch.setattr(GRPOTrainer, "compute_loss", refuse_last)
    rows, _ = train(tmp_path / "tight", steps=1)
    assert rows[0]["rows_at_once"] == 1
    assert rows[0]["grad_norm"] == pytest.approx(expected[0]["grad_norm"], rel=1e-4)


# Outside of training steps


def small_memory_to_sample(made: Policy, rows: int) -> Policy:
    """A policy whose model cannot sample more rows at once."""

    def on_embedded(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        if not torch.is_grad_enabled() and len(output) > rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    made.model.get_input_embeddings().register_forward_hook(on_embedded)
    return made


def test_completions_that_do_not_fit_side_by_side_are_written_a_few_at_a_time(caplog):
    sampled = partial(sample, prompts=["one", "two"], num_samples=4, temperature=1.0, seed=3, batch_size=8)
    assert sampled(small_memory_to_sample(policy(), 3)) == sampled(policy())
    assert "4 completions do not fit into memory side by side; 2 are written at once" in caplog.text


def test_a_completion_that_does_not_fit_is_said_to_be_too_long():
    with pytest.raises(MachineError, match=r"a completion of up to .* tokens.*Lower policy\.context_tokens"):
        sample(small_memory_to_sample(policy(), 0), ["x"], num_samples=2, temperature=None, seed=0, batch_size=2)


def test_a_step_whose_completions_do_not_fit_is_not_taken_for_a_lost_judge(tmp_path):
    with pytest.raises(MachineError, match=r"a completion of up to .* does not fit"):
        train(tmp_path, made=small_memory_to_sample(talkative(), 0))


def test_an_engine_that_runs_out_of_memory_says_what_to_lower(tmp_path, monkeypatch):
    def write(*_: object, **__: object) -> Written:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Sampler, "write", write)
    with pytest.raises(MachineError, match=r"step 1: sampling 8 completions.*Lower contrastive_rl\.groups_at_once"):
        train(tmp_path)


def test_an_optimiser_that_does_not_fit_says_what_to_change(tmp_path, monkeypatch):
    def step(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch.optim.AdamW, "step", step)
    with pytest.raises(MachineError, match=r"the optimiser's state does not fit.*policy\.adapter"):
        test_sft.train(tmp_path)


class Large:
    def cuda(self, number: int) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")


@pytest.mark.parametrize(
    ("zero_stage", "put"), [(0, partial(place_model, attention=None)), (3, lambda model: on_gpu(model).__enter__())]
)
def test_a_model_that_does_not_fit_says_what_to_change(monkeypatch, zero_stage, put):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(team, "_joined", team.Team(engine=EngineParams(zero_stage=zero_stage)))
    with pytest.raises(MachineError, match=r"the policy's model does not fit.*Choose a smaller policy\.model") as said:
        put(Large())
    assert "whole on every GPU that samples, under ZeRO-3 too" in str(said.value)
    assert "zero_stage: 3" not in str(said.value)


def test_a_model_that_is_not_whole_beside_its_state_says_what_to_change(monkeypatch):
    monkeypatch.setattr(team, "_joined", team.Team(engine=EngineParams(zero_stage=3)))
    monkeypatch.setattr(grpo_trainer, "unwrap_model_for_generation", Mock(side_effect=torch.OutOfMemoryError("full")))
    with (
        pytest.raises(MachineError, match=r"the whole model, beside .* does not fit.*engine\.offload"),
        ContrastiveTrainer._whole_model(Mock()),
    ):
        pass


@pytest.mark.parametrize("step", [1, 2])
def test_a_reference_model_that_does_not_fit_ends_training_instead_of_trying_forever(tmp_path, monkeypatch, step):
    probabilities = ContrastiveTrainer._get_per_token_logps_and_entropies

    def refuse(trainer, model, *others, **named):
        if model is trainer.ref_model and trainer._number == step:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return probabilities(trainer, model, *others, **named)

    monkeypatch.setattr(ContrastiveTrainer, "_get_per_token_logps_and_entropies", refuse)
    with pytest.raises(TrainingError, match=rf"update {step}: the batch's row\(s\) do not fit into memory"):
        train(tmp_path, kl_beta=0.1, steps=2)
