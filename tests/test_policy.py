"""A policy is made, asked, saved and loaded."""

import json
from pathlib import Path

import huggingface_hub.constants
import pytest
import torch

from tasks.errors import PolicyError
from tasks.training.policy import (
    can_write,
    encode_prompt,
    fitting_prompt,
    load_policy,
    new_policy,
    require_room,
    save_policy,
    writable,
)
from tests.training_builders import (
    SCALED,
    SCALED_BY_CLAMP,
    SCALED_IN_PLACE,
    exemplar,
    policy,
    policy_params,
    problem,
)


def logits(of_policy, text: str) -> torch.Tensor:
    with torch.no_grad():
        return of_policy.model(input_ids=torch.tensor([of_policy.tokenizer(text).input_ids])).logits


@pytest.mark.parametrize(
    "text",
    [SCALED, SCALED_IN_PLACE, "x\t=\r\n  3.5e-7 ** y_1\n\n\n", "größer_als = '∞ 漢字'", "float *a = &b[0]; // c\n", ""],
    ids=["reference", "candidate", "whitespace and numbers", "unicode", "c", "empty"],
)
def test_any_text_is_decoded_to_what_was_encoded(text):
    tokenizer = policy().tokenizer
    assert tokenizer.decode(tokenizer(text).input_ids) == text


@pytest.mark.parametrize("before", ["self.", "(", " * ", ", ", "\n        "])
def test_a_name_is_the_same_tokens_wherever_it_stands(before):
    tokenizer = policy().tokenizer
    name = tokenizer("features").input_ids
    assert tokenizer(f"{before}features)").input_ids[-len(name) - 1 : -1] == name


def test_a_library_that_cannot_compute_the_policys_convolutions_is_to_be_uninstalled(tmp_path, monkeypatch):
    save_policy(policy(), tmp_path / "saved")
    (tmp_path / "causal_conv1d.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    for make in (policy, lambda: load_policy(tmp_path / "saved", policy_params())):
        with pytest.raises(PolicyError, match=r"read 9 tokens\. .* it takes at most 4: uninstall it"):
            make()


def test_equal_seeds_give_equal_weights():
    one, same, other = (policy(seed=seed).model.state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_what_is_saved_is_loaded_again(tmp_path):
    made = policy()
    save_policy(made, tmp_path / "policy")
    loaded = load_policy(tmp_path / "policy", policy_params())
    assert torch.equal(logits(made, SCALED), logits(loaded, SCALED))
    assert loaded.end_ids == made.end_ids
    assert loaded.tokenizer.pad_token_id == made.tokenizer.pad_token_id


def test_saving_replaces_an_older_policy_and_leaves_nothing_else(tmp_path):
    for seed in (1, 2):
        save_policy(policy(seed=seed), tmp_path / "policy")
    assert [path.name for path in tmp_path.iterdir()] == ["policy"]
    loaded = load_policy(tmp_path / "policy", policy_params())
    assert torch.equal(logits(loaded, SCALED), logits(policy(seed=2), SCALED))


def test_a_save_that_fails_halfway_leaves_the_older_policy_as_it_was(tmp_path, monkeypatch):
    older, newer = policy(seed=1), policy(seed=2)
    save_policy(older, tmp_path / "policy")

    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(newer.tokenizer, "save_pretrained", full_disk)
    with pytest.raises(OSError, match="No space left"):
        save_policy(newer, tmp_path / "policy")
    assert [path.name for path in tmp_path.iterdir()] == ["policy"]
    assert torch.equal(logits(load_policy(tmp_path / "policy", policy_params()), SCALED), logits(older, SCALED))


@pytest.mark.parametrize(
    "source",
    [Path("models/missing"), "./missing", "/nowhere/missing", "~/missing", "one/two/missing"],
    ids=str,
)
def test_a_path_that_does_not_exist_is_named_with_the_remedy(source, monkeypatch):
    monkeypatch.setattr("tasks.training.loading.AutoTokenizer.from_pretrained", _must_not_be_called)
    with pytest.raises(PolicyError, match=r"no model at .*missing.*policy\.model in params\.yaml"):
        load_policy(source, policy_params())


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(PolicyError, match="no model at"):
        load_policy(str(tmp_path), policy_params())


def test_an_unreachable_hub_is_said_to_be(monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(PolicyError, match=r"'nobody/no-such-model' cannot be loaded.*hub must be reachable"):
        load_policy("nobody/no-such-model", policy_params())


def test_weights_that_could_run_code_are_refused(tmp_path):
    made = policy()
    save_policy(made, tmp_path / "policy")
    (tmp_path / "policy" / "model.safetensors").unlink()
    torch.save(made.model.state_dict(), tmp_path / "policy" / "pytorch_model.bin")
    with pytest.raises(PolicyError, match="safetensors"):
        load_policy(tmp_path / "policy", policy_params())


def test_a_damaged_config_is_refused(tmp_path):
    save_policy(policy(), tmp_path / "policy")
    (tmp_path / "policy" / "config.json").write_text(json.dumps({"model_type": "no_such_type"}))
    with pytest.raises(PolicyError, match="cannot be loaded"):
        load_policy(tmp_path / "policy", policy_params())


def test_a_tokenizer_without_padding_pads_with_its_end_token(tmp_path):
    made = policy()
    made.tokenizer.pad_token = None
    save_policy(made, tmp_path / "policy")
    loaded = load_policy(tmp_path / "policy", policy_params())
    assert loaded.tokenizer.pad_token_id == loaded.tokenizer.eos_token_id == loaded.model.config.pad_token_id


def test_every_end_token_a_model_declares_ends_a_completion():
    made = policy()
    made.model.generation_config.eos_token_id = [7, 9]
    assert made.end_ids == sorted({7, 9, made.tokenizer.eos_token_id})


@pytest.mark.parametrize(("style", "is_wrapped"), [("instruct", True), ("compact", False)])
def test_only_instruct_prompts_go_through_the_chat_template(style, is_wrapped):
    made = policy(prompt_style=style)
    made.tokenizer.chat_template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<answer>"
    text = made.tokenizer.decode(encode_prompt(made, "faster"))
    assert text == ("<user>faster<answer>" if is_wrapped else "faster")


def test_a_prompt_keeps_the_fastest_exemplars_that_fit():
    slow, fast = exemplar(SCALED_BY_CLAMP, speedup=1.1), exemplar(SCALED_IN_PLACE, speedup=3.0)
    both, _ = fitting_prompt(policy(context_tokens=2000), SCALED, [slow, fast])
    length = len(encode_prompt(policy(), both))

    roomy = policy(context_tokens=length + 24)
    assert fitting_prompt(roomy, SCALED, [slow, fast]) == (both, [slow, fast])
    prompt, shown = fitting_prompt(policy(context_tokens=length + 23), SCALED, [slow, fast])
    assert shown == [fast]
    assert "# 3x" in prompt
    assert "# 1.1x" not in prompt


def test_a_reference_that_leaves_no_room_for_a_completion_is_refused():
    with pytest.raises(PolicyError, match=r"a reference takes \d+ tokens.*raise policy\.context_tokens"):
        fitting_prompt(policy(context_tokens=128, completion_tokens=100), SCALED, [])


def test_all_problems_that_leave_no_room_are_named():
    made = policy(context_tokens=500, completion_tokens=100)
    long = SCALED.replace("    out = ", "    out = " + "0.0 + " * 300)
    require_room(made, [problem("one"), problem("two")])
    with pytest.raises(
        PolicyError, match=r"^the reference of level1/b takes \d+ tokens.*leaves only 400; raise policy"
    ):
        require_room(made, [problem("a"), problem("b", long)])
    with pytest.raises(PolicyError, match=r"^the longest reference of level1/b, level1/c takes \d+ tokens"):
        require_room(made, [problem("c", long), problem("a"), problem("b", long)])


def test_a_policy_of_one_layer_attends():
    made = new_policy([SCALED], policy_params(layers=1), seed=0)
    assert made.model.config.layer_types == ["full_attention"]


def _must_not_be_called(*_: object, **__: object) -> None:
    raise AssertionError("the hub was asked for a path")


def test_what_is_longer_than_a_completion_is_not_kept_for_teaching():
    made = policy(completion_tokens=120)
    too_long = SCALED + "# more\n" * made.completion_tokens
    assert can_write(made, SCALED)
    assert not can_write(made, too_long)
    short, long = exemplar(SCALED), exemplar(too_long)
    assert writable(made, {"both": [short, long], "none": [long]}) == {"both": [short]}
