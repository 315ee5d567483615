"""Completions sampled from a policy are what the model says, in order, and end where it ends."""

import dataclasses

import pytest
import torch

from tasks.errors import PolicyError
from tasks.training.policy import encode_prompt
from tasks.training.sampling import sample, sample_ids
from tests.training_builders import SCALED, SCALED_IN_PLACE, policy

PROMPTS = ["import torch\n", SCALED, "x", SCALED_IN_PLACE]


def sharpened(**changes):
    """A policy whose random weights are large enough for its choices to be clear and to differ between prompts."""
    made = policy(**changes)
    with torch.no_grad():
        for parameter in made.model.parameters():
            parameter.mul_(4.0)
    return made


def greedy(made, prompts, *, batch_size: int = 8) -> list[list[int]]:
    ids = [encode_prompt(made, prompt) for prompt in prompts]
    answers = sample_ids(made, ids, num_samples=1, temperature=None, seed=0, batch_size=batch_size)
    return [ids for (ids,) in answers]


def generated(made, prompt: str) -> list[int]:
    ids = torch.tensor([encode_prompt(made, prompt)])
    with torch.no_grad():
        answer = made.model.generate(input_ids=ids, max_new_tokens=made.completion_tokens, do_sample=False)
    return answer[0, ids.shape[1] :].tolist()


def test_greedy_completions_equal_those_of_transformers():
    made = sharpened()
    completions = greedy(made, PROMPTS)
    assert completions == [generated(made, prompt) for prompt in PROMPTS]
    assert len(set(map(tuple, completions))) == len(PROMPTS)


def test_completions_end_at_an_end_token_while_the_others_go_on():
    made = sharpened()
    unended = greedy(made, PROMPTS)
    made.model.generation_config.eos_token_id = [unended[0][0], unended[1][3], unended[2][10]]
    expected = [generated(made, prompt) for prompt in PROMPTS]
    assert len(set(map(len, expected))) > 2
    assert greedy(made, PROMPTS) == expected


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_the_batch_size_does_not_change_what_is_likeliest(batch_size):
    made = sharpened()
    assert greedy(made, PROMPTS, batch_size=batch_size) == greedy(made, PROMPTS)


def test_no_more_completions_are_written_side_by_side_than_the_policy_wants():
    made = sharpened()
    beside: list[int] = []
    made.model.get_input_embeddings().register_forward_pre_hook(lambda _, given: beside.append(len(given[0])))
    tight = dataclasses.replace(made, completions_at_once=2)
    expected = greedy(made, PROMPTS)
    assert max(beside) == len(PROMPTS)
    beside.clear()
    assert greedy(tight, PROMPTS) == expected
    assert max(beside) == 2


def test_equal_seeds_give_equal_completions():
    made = policy()

    def draw(seed: int) -> list[list[str]]:
        return sample(made, PROMPTS, num_samples=3, temperature=1.0, seed=seed, batch_size=8)

    assert draw(1) == draw(1) != draw(2)
    assert [len(group) for group in draw(1)] == [3, 3, 3, 3]


def test_samples_follow_the_temperature():
    made = sharpened()
    cold = sample(made, ["x"], num_samples=16, temperature=1e-5, seed=0, batch_size=16)
    hot = sample(made, ["x"], num_samples=16, temperature=5.0, seed=0, batch_size=16)
    assert set(cold[0]) == set(sample(made, ["x"], num_samples=1, temperature=None, seed=0, batch_size=1)[0])
    assert len(set(hot[0])) == 16


def test_first_tokens_are_drawn_with_the_probabilities_of_the_model():
    made = sharpened(completion_tokens=16)
    ids = encode_prompt(made, "x")
    with torch.no_grad():
        expected = made.model(input_ids=torch.tensor([ids])).logits[0, -1].softmax(dim=-1)
    (completions,) = sample_ids(made, [ids], num_samples=2000, temperature=1.0, seed=0, batch_size=2000)
    counts = torch.bincount(torch.tensor([tokens[0] for tokens in completions]), minlength=len(expected))
    assert (counts / 2000 - expected).abs().max() < 0.05


def test_texts_carry_no_special_tokens():
    made = policy()
    (texts,) = sample(made, ["x"], num_samples=200, temperature=100.0, seed=0, batch_size=200)
    (tokens,) = sample_ids(made, [encode_prompt(made, "x")], num_samples=200, temperature=100.0, seed=0, batch_size=200)
    end = made.tokenizer.eos_token_id
    assert any(ids[-1] == end for ids in tokens)
    assert all(end not in ids[:-1] for ids in tokens)
    assert not any("<|" in text for text in texts)


def test_a_prompt_without_room_for_a_completion_is_refused():
    with pytest.raises(PolicyError, match=r"a prompt takes \d+ tokens"):
        sample(policy(context_tokens=128), [SCALED * 3], num_samples=1, temperature=None, seed=0, batch_size=1)


def test_progress_adds_up_to_all_completions():
    done: list[int] = []
    sample(policy(), PROMPTS, num_samples=2, temperature=1.0, seed=0, batch_size=3, on_progress=done.append)
    assert done == [3, 3, 2]


def test_no_prompts_give_no_completions():
    assert sample(policy(), [], num_samples=2, temperature=1.0, seed=0, batch_size=3) == []


def test_a_model_in_training_goes_on_training():
    made = policy()
    made.model.train()
    sample(made, ["x"], num_samples=1, temperature=None, seed=0, batch_size=1)
    assert made.model.training
