"""Who writes completions in training: each engine writes with the policy's present weights, or is found out."""

import dataclasses

import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from tasks.errors import MachineError, PolicyError, StaleWeightsError
from tasks.params import AdapterParams, EngineParams
from tasks.training import team, vllm_server
from tasks.training.adapters import with_new_adapter
from tasks.training.continuous_batching import ContinuousBatching
from tasks.training.generation import Sampler, Written, fresh_completions, generation_engine, weights_stamp
from tasks.training.policy import Policy, encode_prompt
from tasks.training.vllm_server import VllmServer
from tests.training_builders import SCALED, policy

PROMPTS = ["import torch\n", SCALED, "x"]


def qwen() -> Policy:
    """A policy whose layers every engine knows, with weights that have clear preferences."""
    made = policy()
    config = Qwen2Config(
        vocab_size=len(made.tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        eos_token_id=made.tokenizer.eos_token_id,
        pad_token_id=made.tokenizer.pad_token_id,
        bos_token_id=None,
    )
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4.0)
    return dataclasses.replace(made, model=model)


def written(engine, made: Policy, *, temperature: float | None = None, num_samples: int = 1) -> list[list[list[int]]]:
    ids = [encode_prompt(made, prompt) for prompt in PROMPTS]
    return fresh_completions(engine, made.model, ids, num_samples=num_samples, temperature=temperature, seed=0)


class CopyEngine(Sampler):
    """Writes with a copy of the weights, as a server does; a forgetful one never takes new ones."""

    def __init__(self, made: Policy, *, is_forgetful: bool) -> None:
        super().__init__(made)
        self._is_forgetful = is_forgetful
        self._stamp: str | None = None

    def take(self, model, *, stamp: str) -> None:
        if self._stamp is None or not self._is_forgetful:
            self._stamp = stamp

    def write(self, *prompts, **arguments) -> Written:
        return dataclasses.replace(super().write(*prompts, **arguments), stamp=self._stamp)


def update(made: Policy) -> None:
    optimizer = torch.optim.AdamW(made.model.parameters(), lr=1e-4)
    ids = torch.tensor([encode_prompt(made, SCALED)])
    made.model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()


def test_what_was_written_with_the_weights_of_an_earlier_step_is_refused():
    made = policy()
    honest, forgetful = (CopyEngine(made, is_forgetful=value) for value in (False, True))
    assert written(honest, made) == written(forgetful, made)
    update(made)
    written(honest, made)
    with pytest.raises(StaleWeightsError, match=r"CopyEngine wrote with weights \w{8}, but the policy's are \w{8}"):
        written(forgetful, made)


def test_the_stamp_is_that_of_the_weights():
    one, same, other = policy(), policy(), policy(seed=1)
    assert weights_stamp(one.model) == weights_stamp(same.model) != weights_stamp(other.model)
    update(same)
    assert weights_stamp(one.model) != weights_stamp(same.model)


def test_continuous_batching_writes_what_the_sampler_writes():
    made = qwen()
    attention = made.model.config._attn_implementation
    assert written(ContinuousBatching(made), made) == written(Sampler(made), made)
    assert made.model.config._attn_implementation == attention


def test_continuous_batching_samples():
    made = qwen()
    groups = written(ContinuousBatching(made), made, temperature=1.0, num_samples=3)
    assert [len(group) for group in groups] == [3, 3, 3]
    assert len({tuple(ids) for group in groups for ids in group}) > 3


def test_a_model_that_continuous_batching_does_not_know_is_refused_by_name():
    made = policy()  # its layers are convolutions
    with pytest.raises(MachineError, match=r"conv; set engine.generator to sampler"):
        written(ContinuousBatching(made), made)


@pytest.mark.parametrize(
    ("engine", "kind"),
    [
        pytest.param(EngineParams(), "Sampler", id="the default"),
        pytest.param(EngineParams(generator="continuous_batching"), "ContinuousBatching", id="continuous batching"),
    ],
)
def test_params_choose_the_engine(monkeypatch, engine, kind):
    monkeypatch.setattr(team, "_joined", team.Team(engine=engine))
    assert type(generation_engine(policy())).__name__ == kind


def test_vllm_refuses_adapters_before_it_looks_for_a_server():
    pytest.importorskip("peft")
    made = qwen()
    made = dataclasses.replace(made, model=with_new_adapter(made.model, AdapterParams(rank=2, alpha=4.0)))
    with pytest.raises(PolicyError, match=r"the policy is an adapter: set engine.generator to sampler"):
        VllmServer(made, "http://127.0.0.1:9")


class AskedServer:
    """Notes the seeds it is asked for."""

    def __init__(self) -> None:
        self.seeds: list[int] = []

    def generate(self, prompts, *, n, generation_kwargs, **_):
        self.seeds.append(generation_kwargs["seed"])
        return {"completion_ids": [[1]] * (n * len(prompts))}


def test_groups_that_vllm_writes_one_after_another_are_not_drawn_alike(monkeypatch):
    server = AskedServer()
    monkeypatch.setattr(vllm_server, "_client", lambda url, device: server)
    engine = VllmServer(qwen(), "http://127.0.0.1:9")
    for first in (0, 1):
        engine.write([[1]], num_samples=2, temperature=1.0, seed=7, first=first)
    assert server.seeds == [7, 8]


def test_vllm_that_is_not_installed_is_named_with_what_to_do(monkeypatch):
    pytest.importorskip("requests")
    try:
        import vllm  # noqa: F401
    except ImportError:
        engine = EngineParams(generator="vllm", vllm_url="http://127.0.0.1:9")
        monkeypatch.setattr(team, "_joined", team.Team(engine=engine))
        with pytest.raises(MachineError, match=r"engine.generator is vllm, .*[^.]\. Install vllm or choose"):
            generation_engine(policy())
    else:
        pytest.skip("vllm is installed")
