"""Lines that many programs share cost a policy from scratch a token each."""

import pytest

from tasks.training.policy import can_write, load_policy, new_policy, save_policy
from tasks.training.tokenizer import new_tokenizer
from tests.training_builders import policy_params

SHARED = """def replayed(graph, static, inputs, outputs):
    for place, item in zip(static, inputs, strict=True):
        place.copy_(item)
    graph.replay()
    return [output.clone() for output in outputs]
"""
CORPUS = [f"LAYERS_{number} = {number}\n\n\n{SHARED}\n\nprint(LAYERS_{number})\n" for number in range(12)]


def tokens(text: str, **changes: int) -> list[int]:
    return new_tokenizer(CORPUS, vocab_size=420, **changes)(text).input_ids


def test_each_shared_line_is_one_token():
    assert len(tokens(SHARED, line_tokens=100)) == len(SHARED.splitlines())
    assert len(tokens(SHARED)) > 40


def test_those_that_save_most_come_first():
    longest = max(SHARED.splitlines(keepends=True), key=lambda line: len(tokens(line)))
    assert len(tokens(longest, line_tokens=1)) == 1
    assert sum(len(tokens(line, line_tokens=1)) == 1 for line in SHARED.splitlines(keepends=True)) == 1


def test_a_line_that_few_programs_have_is_none():
    line = "    return [output.clone() for output in outputs]\n"
    for count, is_one in ((9, False), (10, True)):
        made = new_tokenizer([line] * count + ["x = 1\n"] * 5, vocab_size=420, line_tokens=100)
        is_known = line in made.get_added_vocab()
        assert is_known is is_one, count


@pytest.mark.parametrize(
    "text",
    [
        *CORPUS[:1],
        SHARED.replace("\n", "\n    "),
        SHARED.replace("    graph.replay()\n", "    graph.replay()  # once\n"),
        SHARED.replace("\n", "\r\n"),
        SHARED.rstrip("\n"),
        "graph.replay()\n    graph.replay()\n\n    graph.replay()",
    ],
    ids=["a program", "indented further", "a comment behind", "other ends", "no end", "pieces"],
)
def test_any_text_is_decoded_to_what_was_encoded(text):
    made = new_tokenizer(CORPUS, vocab_size=420, line_tokens=100)
    ids = made(text).input_ids
    assert made.decode(ids) == text
    assert made.decode(ids, skip_special_tokens=True) == text


def test_a_saved_policy_reads_and_writes_as_before(tmp_path):
    program = CORPUS[0]
    made = new_policy(CORPUS, policy_params(line_tokens=100, completion_tokens=40), seed=0)
    assert made.model.get_input_embeddings().num_embeddings == len(made.tokenizer)
    assert can_write(made, program)
    assert not can_write(new_policy(CORPUS, policy_params(completion_tokens=40), seed=0), program)
    save_policy(made, tmp_path / "policy")
    loaded = load_policy(tmp_path / "policy", policy_params(completion_tokens=40))
    assert loaded.tokenizer(program).input_ids == made.tokenizer(program).input_ids
    assert loaded.tokenizer.decode(loaded.tokenizer(program).input_ids) == program
