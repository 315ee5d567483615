"""How often a program is written follows how often it was taught, not how long it is."""

from pathlib import Path

import pytest
import torch

from tasks.training.examples import Example
from tasks.training.policy import Policy, encode_prompt
from tests.test_sft import train
from tests.training_builders import policy

PROMPT = "# a\n"
SHORT, LONG = "return a", "b = " + " + ".join(["a * 2.0"] * 12)


def share_of_long(made: Policy) -> float:
    """Of what the policy begins with, short or long."""
    ids = torch.tensor([encode_prompt(made, PROMPT)])
    with torch.no_grad():
        chances = made.model(input_ids=ids).logits[0, -1].softmax(-1)
    short, long = (chances[made.tokenizer(each).input_ids[0]].item() for each in (SHORT, LONG))
    assert short + long > 0.8
    return long / (short + long)


@pytest.mark.parametrize("batch_size", [8, 16], ids=["one micro-batch", "two micro-batches"])
@pytest.mark.parametrize("taught", [0.5, 0.75])
def test_short_and_long_programs_are_written_as_often_as_they_are_taught(
    tmp_path: Path, taught: float, batch_size: int
) -> None:
    made = policy(completion_tokens=120)
    num_long = round(64 * taught)
    examples = [Example(prompt=PROMPT, completion=LONG)] * num_long
    examples += [Example(prompt=PROMPT, completion=SHORT)] * (64 - num_long)
    train(
        tmp_path, made=made, examples=examples, steps=160, learning_rate=5e-3, batch_size=batch_size, micro_batch_size=8
    )
    assert share_of_long(made) == pytest.approx(taught, abs=0.12)
