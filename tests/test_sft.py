"""Supervised training: completions only, quiet, and resumable to the very same losses."""

from pathlib import Path

import pytest
import torch

from tasks.errors import PolicyError
from tasks.training import checkpoints as checkpointing
from tasks.training.acceleration import accelerated
from tasks.training.checkpoints import checkpointed_steps, newest_checkpoint
from tasks.training.examples import Example
from tasks.training.policy import encode_prompt
from tasks.training.sampling import sample
from tasks.training.sft import train_sft
from tests.training_builders import policy

EXAMPLES = [Example(prompt=f"# {a}\n", completion=f"return {a} + {b}") for a in "abcdef" for b in "xy"]


class Killed(Exception):
    """Stands for a kill between two steps."""


def train(folder: Path, *, made=None, steps: int = 8, kill_after: int | None = None, **changes):
    seen: list[int] = []

    def on_step(step: int, row: dict[str, float]) -> None:
        seen.append(step)
        if step == kill_after:
            raise Killed

    arguments = {"examples": EXAMPLES, "batch_size": 4, "learning_rate": 3e-3, "seed": 3} | changes
    rows = train_sft(
        made or policy(), arguments.pop("examples"), steps=steps, checkpoints=folder, on_step=on_step, **arguments
    )
    return rows, seen


@pytest.fixture
def saving_every_step(monkeypatch):
    monkeypatch.setattr(checkpointing, "INTERVAL_S", 0.0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> list[dict[str, float]]:
    """Rows of a training that nothing interrupts."""
    return train(tmp_path_factory.mktemp("whole"))[0]


def test_a_policy_learns_what_it_is_taught(tmp_path):
    made = policy()
    examples = [Example(prompt=f"# {name}\n", completion=f"return {name} * 2.0") for name in "abcd"]
    rows, seen = train(tmp_path, made=made, examples=examples, steps=120, learning_rate=1e-2)
    assert seen == list(range(1, 121))
    assert [row["step"] for row in rows] == seen
    assert rows[-1]["loss"] < 0.2 < rows[0]["loss"]
    answers = sample(made, ["# a\n", "# c\n"], num_samples=1, temperature=None, seed=0, batch_size=2)
    assert answers == [["return a * 2.0"], ["return c * 2.0"]]


def test_what_comes_first_is_learnt_before_the_rest(tmp_path):
    first, rest = EXAMPLES[:1], [Example(prompt="# sum\n", completion="return a + b + c + d")]
    rows, _ = train(tmp_path / "both", examples=rest, first=first, first_steps=2, steps=4, learning_rate=1e-9)
    alone = [
        train(tmp_path / name, examples=examples, steps=1)[0][0]["loss"]
        for name, examples in (("first", first), ("rest", rest))
    ]
    assert [row["loss"] for row in rows] == pytest.approx([alone[0], alone[0], alone[1], alone[1]], rel=1e-5)
    assert alone[0] != pytest.approx(alone[1], rel=3e-4)


def test_only_completions_and_their_end_are_learnt(tmp_path):
    made = policy()
    ids = encode_prompt(made, "# a\n")
    answer = [*made.tokenizer("return a").input_ids, made.tokenizer.eos_token_id]
    with torch.no_grad(), accelerated(made.model, packing=False, compiles=False):  # rounded as when it is trained
        logits = made.model(input_ids=torch.tensor([ids + answer])).logits[0]
    expected = torch.nn.functional.cross_entropy(logits[len(ids) - 1 : -1], torch.tensor(answer)).item()
    rows, _ = train(
        tmp_path, made=made, examples=[Example(prompt="# a\n", completion="return a")], steps=1, batch_size=1
    )
    assert rows[0]["loss"] == pytest.approx(expected, rel=1e-5)


def test_padding_does_not_change_the_loss(tmp_path):
    short, long = Example(prompt="# a\n", completion="return a"), Example(prompt="# a\n" * 9, completion="return b + c")
    alone = [
        train(tmp_path / name, examples=[example], steps=1, batch_size=1)[0][0]["loss"]
        for name, example in (("short", short), ("long", long))
    ]
    tokenizer = policy().tokenizer
    lengths = [len(tokenizer(example.completion).input_ids) + 1 for example in (short, long)]
    together = train(tmp_path / "both", examples=[short, long], steps=1, batch_size=2)[0][0]["loss"]
    weighted = sum(loss * length for loss, length in zip(alone, lengths, strict=True)) / sum(lengths)
    assert together == pytest.approx(weighted, rel=1e-5)


@pytest.mark.usefixtures("saving_every_step")
def test_a_killed_training_goes_on_to_the_same_losses(tmp_path, whole):
    with pytest.raises(Killed):
        train(tmp_path / "killed", kill_after=5)
    assert checkpointed_steps(tmp_path / "killed") == 4
    resumed, seen = train(tmp_path / "killed")
    assert seen == [5, 6, 7, 8]
    assert resumed == whole


@pytest.mark.usefixtures("saving_every_step")
def test_a_half_written_checkpoint_is_not_resumed_from(tmp_path, whole):
    with pytest.raises(Killed):
        train(tmp_path / "killed", kill_after=4)
    half = tmp_path / "killed" / "checkpoint-6"
    half.mkdir()
    (half / "trainer_state.json").write_text("{")
    resumed, seen = train(tmp_path / "killed")
    assert seen == [4, 5, 6, 7, 8]
    assert resumed == whole
    assert not (half / "trainer_state.json").exists() or newest_checkpoint(tmp_path / "killed") != half


@pytest.mark.usefixtures("saving_every_step")
def test_only_the_newest_checkpoint_is_kept(tmp_path):
    train(tmp_path)
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-8"]


def test_a_finished_training_is_not_repeated(tmp_path):
    first, _ = train(tmp_path)
    made = policy()
    again, seen = train(tmp_path, made=made)
    assert seen == []
    assert again == first
    trained = policy()
    train(tmp_path / "other", made=trained)
    assert all(
        torch.equal(one, other) for one, other in zip(made.model.parameters(), trained.model.parameters(), strict=True)
    )


def test_checkpoints_wait_for_their_interval(tmp_path):
    with pytest.raises(Killed):
        train(tmp_path, kill_after=5)
    assert checkpointed_steps(tmp_path) == 0


def test_equal_seeds_give_equal_losses(tmp_path):
    one, same, other = (train(tmp_path / name, seed=seed)[0] for name, seed in (("a", 1), ("b", 1), ("c", 2)))
    assert one == same != other


def test_examples_too_long_for_the_policy_are_left_out(tmp_path, whole):
    long = [Example(prompt="# a\n", completion="a + " * 40), Example(prompt="b + " * 300, completion="c")]
    mixed, _ = train(tmp_path / "mixed", examples=[*EXAMPLES, *long])
    assert mixed == whole
    with pytest.raises(PolicyError, match=r"none of the \d+ examples of candidates, .* fits policy\.context_tokens"):
        train(tmp_path / "none", examples=long)


def test_training_says_nothing_itself(tmp_path, capfd):
    train(tmp_path, steps=2)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == ""
