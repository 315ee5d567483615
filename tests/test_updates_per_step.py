"""Several updates of the weights from one batch of rollouts, measured against the weights that sampled it."""

from collections import defaultdict

import pytest
import torch

from tasks.training import checkpoints as checkpointing
from tasks.training.checkpoints import checkpointed_steps
from tasks.training.grpo_trainer import ContrastiveTrainer
from tests.test_grpo import problems_of, train


@pytest.fixture
def ratios(monkeypatch) -> list[tuple[int, float, float]]:
    """The number of the update, and the least and the largest ratio of probabilities in each loss that was computed."""
    found = []
    compute = ContrastiveTrainer.compute_loss

    def watched(self, model, inputs, *others, **named):
        old = inputs.get("old_per_token_logps")
        loss = compute(self, model, inputs, *others, **named)
        new = torch.cat(self._logps)
        mask = inputs["completion_mask"].bool()
        ratio = (new - (new if old is None else old)).exp()[mask]
        found.append((self.state.global_step, ratio.min().item(), ratio.max().item()))
        return loss

    monkeypatch.setattr(ContrastiveTrainer, "compute_loss", watched)
    return found


def test_the_ratio_is_1_in_the_first_update_and_leaves_it_later(tmp_path, ratios):
    train(tmp_path, updates_per_step=3)
    assert len(ratios) == 4 * 3 * 2  # steps, updates, groups
    first = [ratio for ratio in ratios if ratio[0] % 3 == 0]
    later = [ratio for ratio in ratios if ratio[0] % 3 and ratio[0] > 3]  # the first updates of all are a warm-up
    assert all((low, high) == (1.0, 1.0) for _, low, high in first)
    assert all(low < 1.0 < high for _, low, high in later)


def test_the_remembered_probabilities_are_those_of_the_weights_that_sampled(tmp_path, monkeypatch):
    """What the first update leaves behind is what TRL would have computed at the time of sampling."""
    compared = []
    make_groups = ContrastiveTrainer._new_groups
    compute = ContrastiveTrainer.compute_loss

    def sampled(self, batch):
        groups = make_groups(self, batch)
        with torch.no_grad():
            for group in groups:
                ids = torch.cat([group["prompt_ids"], group["completion_ids"]], dim=1)
                mask = torch.cat([group["prompt_mask"], group["completion_mask"]], dim=1)
                width = group["completion_ids"].size(1)
                group["expected"], *_ = self._get_per_token_logps_and_entropies(self.model, ids, mask, width)
        return groups

    def computed(self, model, inputs, *others, **named):
        expected = inputs.pop("expected", None)
        loss = compute(self, model, inputs, *others, **named)
        if expected is not None:
            compared.append(torch.equal(inputs["old_per_token_logps"], expected))
        return loss

    monkeypatch.setattr(ContrastiveTrainer, "_new_groups", sampled)
    monkeypatch.setattr(ContrastiveTrainer, "compute_loss", computed)
    train(tmp_path, updates_per_step=2)
    assert compared == [True] * 8


def test_clipping_engages_in_later_updates_only(tmp_path):
    tight, _ = train(tmp_path / "tight", updates_per_step=4, clip_epsilon=1e-4)
    loose, _ = train(tmp_path / "loose", updates_per_step=4, clip_epsilon=1e4)
    assert max(row["clipped"] for row in tight) > 0
    assert all(row["clipped"] == 0 for row in loose)
    assert tight[-1]["loss"] != loose[-1]["loss"]


@pytest.fixture
def later_tokens(monkeypatch) -> dict[int, list[bool]]:
    """Of every step, whether each token of its later updates was clipped; nothing is noted of their parts."""
    found: dict[int, list[bool]] = defaultdict(list)
    compute = ContrastiveTrainer.compute_loss

    def watched(self, model, inputs, *others, **named):
        loss = compute(self, model, inputs, *others, **named)
        ratio = (torch.cat(self._logps) - inputs["old_per_token_logps"]).exp()
        pushed = inputs["advantages"][:, None].sign()
        clipped = ((ratio - 1) * pushed > self._params.clip_epsilon)[inputs["completion_mask"].bool()]
        if self.state.global_step % self._params.updates_per_step:
            found[self._number] += clipped.tolist()
        return loss

    monkeypatch.setattr(ContrastiveTrainer, "compute_loss", watched)
    return found


@pytest.mark.parametrize("rows", [None, 1, 3], ids=["whole", "row by row", "uneven parts"])
def test_the_share_that_was_clipped_is_of_all_tokens_of_the_later_updates(tmp_path, later_tokens, rows):
    steps, _ = train(tmp_path, updates_per_step=3, clip_epsilon=1e-3, micro_batch_size=rows)
    shares = [sum(later_tokens[row["step"]]) / len(later_tokens[row["step"]]) for row in steps]
    assert [row["clipped"] for row in steps] == pytest.approx(shares)
    assert max(shares) > 0


def test_an_update_that_did_not_fit_into_memory_is_counted_once(tmp_path, monkeypatch):
    whole, _ = train(tmp_path / "whole", updates_per_step=2, clip_epsilon=1e-3, micro_batch_size=2)
    backward, failed = ContrastiveTrainer._accumulate, []

    def scarce(self, loss):
        if self.state.global_step == 5 and self._step % 2 and not failed:  # the second group of a later update
            failed.append(loss)
            raise torch.OutOfMemoryError("too large")
        backward(self, loss)

    monkeypatch.setattr(ContrastiveTrainer, "_accumulate", scarce)
    halved, _ = train(tmp_path / "halved", updates_per_step=2, clip_epsilon=1e-3, micro_batch_size=2)
    assert failed
    assert [row["clipped"] for row in halved] == pytest.approx([row["clipped"] for row in whole], abs=0.02)
    assert halved[2]["rows_at_once"] == 1


def test_one_update_is_never_clipped_and_says_nothing_about_it(tmp_path):
    tight, _ = train(tmp_path / "tight", clip_epsilon=1e-4)
    loose, _ = train(tmp_path / "loose", clip_epsilon=1e4)
    assert tight == loose
    assert all("clipped" not in row for row in tight)


def test_a_step_is_one_row_and_one_batch_of_rollouts_however_many_updates_it_has(tmp_path):
    one, once = train(tmp_path / "one")
    three, thrice = train(tmp_path / "three", updates_per_step=3)
    assert [row["step"] for row in three] == [row["step"] for row in one] == [1, 2, 3, 4]
    assert problems_of(thrice) == problems_of(once)
    assert three[0]["reward"] == one[0]["reward"]  # the first rollouts are the same
    assert three[-1]["reward"] != one[-1]["reward"]


def test_a_step_cut_short_between_its_updates_is_done_again(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpointing, "INTERVAL_S", 0.0)
    whole, _ = train(tmp_path / "whole", exemplars="none", updates_per_step=2)
    compute = ContrastiveTrainer.compute_loss

    def killed(self, *arguments, **named):
        if self.state.global_step == 5:  # the second update of the third step
            raise KeyboardInterrupt
        return compute(self, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(ContrastiveTrainer, "compute_loss", killed)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "killed", exemplars="none", updates_per_step=2)
    assert checkpointed_steps(tmp_path / "killed", updates=2) == 2
    rows, steps = train(tmp_path / "killed", exemplars="none", updates_per_step=2)
    assert len(steps) == 2
    assert rows == whole
