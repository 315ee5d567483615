"""Batches laid end to end, or taken in pieces, teach what padded whole batches teach."""

import pytest
from pretrained_builders import pretrained

from tasks.errors import PolicyError
from tasks.params import AdapterParams
from tasks.training import sft
from tasks.training.examples import Example
from tasks.training.policy import load_policy
from tests.test_sft import EXAMPLES, train
from tests.training_builders import policy, policy_params

pytestmark = pytest.mark.usefixtures("full_precision")

# Of very different lengths, so that tokens and examples are not the same share of a batch.
MIXED = [
    *EXAMPLES[:5],
    Example(prompt="# a\n" * 30, completion="return b + c"),
    Example(prompt="# b\n", completion="x"),
]
MIXED.append(Example(prompt="# c\n" * 8, completion="return a + b + c + d"))


@pytest.fixture(autouse=True)
def whole_passes(monkeypatch):
    """Every batch holds each example once, whichever way batches are cut."""
    monkeypatch.setattr(sft, "_POOLED_BATCHES", 1)


def losses(folder, made, **changes) -> list[float]:
    rows, _ = train(folder, made=made, steps=4, **({"examples": MIXED, "batch_size": len(MIXED)} | changes))
    return [row["loss"] for row in rows]


@pytest.mark.parametrize(
    ("architecture", "changes"),
    [
        pytest.param("qwen2", {}, id="qwen2"),
        pytest.param("llama", {}, id="llama"),
        pytest.param("qwen2", {"attention": "eager"}, id="eager attention"),
        pytest.param("qwen2", {"adapter": AdapterParams(rank=4, alpha=8)}, id="adapter"),
    ],
)
def test_packed_examples_give_the_losses_of_padded_ones(tmp_path, architecture, changes):
    base = pretrained(tmp_path / "base", architecture)
    params = policy_params(**changes)
    padded, packed = (
        losses(tmp_path / str(packing), load_policy(base, params), packing=packing) for packing in (False, True)
    )
    assert packed == pytest.approx(padded, rel=1e-5)
    assert padded[-1] < padded[0]


def test_an_example_does_not_see_those_packed_before_it(tmp_path):
    base = pretrained(tmp_path / "base")
    alone, among = Example(prompt="# a\n", completion="return a"), Example(prompt="# b\n", completion="return b")
    separate = [
        losses(tmp_path / each.prompt[2], load_policy(base, policy_params()), examples=[each], batch_size=1)[0]
        for each in (alone, among)
    ]
    made = load_policy(base, policy_params())
    together = losses(tmp_path / "both", made, examples=[alone, among], batch_size=2, packing=True)[0]
    assert together == pytest.approx(sum(separate) / 2, rel=1e-5)


@pytest.mark.parametrize("packing", [False, True], ids=["padded", "packed"])
def test_a_batch_in_pieces_gives_the_losses_of_the_whole(tmp_path, packing):
    base = pretrained(tmp_path / "base")
    whole, pieces = (
        losses(tmp_path / str(size), load_policy(base, policy_params()), micro_batch_size=size, packing=packing)
        for size in (None, 2)
    )
    assert pieces == pytest.approx(whole, rel=1e-5)


@pytest.mark.parametrize(
    ("width", "remedy"),
    [(9, "set it to false"), (4, "set it to false, or install causal-conv1d")],
    ids=["wide", "short"],
)
def test_convolutions_would_mix_what_is_packed_and_are_refused(tmp_path, width, remedy):
    made = policy()
    made.model.config.conv_L_cache = width
    with pytest.raises(PolicyError, match=rf"sft\.packing: the conv layers of lfm2 would mix .* together; {remedy}$"):
        losses(tmp_path, made, packing=True)
