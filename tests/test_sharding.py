"""What DeepSpeed is told, and which params of the section engine make no sense."""

import dataclasses

import pytest
from deepspeed.utils import get_z3_leaf_modules
from pydantic import ValidationError
from transformers import Qwen2Config, Qwen2ForCausalLM
from transformers.integrations.deepspeed import HfTrainerDeepSpeedConfig

from flows.parts.launching import trainers
from tasks.errors import ParamsError
from tasks.params import EngineParams, load_params
from tasks.training import sharding
from tasks.training.sharding import deepspeed_settings
from tests.test_several_processes import assert_alike, rows, run


def test_without_a_stage_there_is_no_deepspeed():
    assert deepspeed_settings(EngineParams(), on_cuda=True) is None


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        pytest.param({"zero_stage": 2}, {"stage": 2}, id="zero-2"),
        pytest.param({"zero_stage": 3}, {"stage": 3, "stage3_gather_16bit_weights_on_model_save": True}, id="zero-3"),
        pytest.param(
            {"zero_stage": 2, "offload": "cpu"},
            {"offload_optimizer": {"device": "cpu", "pin_memory": True}},
            id="zero-offload",
        ),
        pytest.param(
            {"zero_stage": 3, "offload": "nvme", "nvme_folder": "/scratch"},
            {"offload_param": {"device": "nvme", "pin_memory": True, "nvme_path": "/scratch"}},
            id="zero-infinity",
        ),
    ],
)
def test_params_become_deepspeeds_settings(engine, expected):
    settings = deepspeed_settings(EngineParams(**engine), on_cuda=True)
    assert settings is not None
    assert expected.items() <= settings["zero_optimization"].items()
    assert ("optimizer" in settings) == ("offload" in engine)
    assert HfTrainerDeepSpeedConfig(settings).is_zero3() == (engine["zero_stage"] == 3)


def test_weights_are_offloaded_only_where_they_are_shared_out():
    settings = deepspeed_settings(EngineParams(zero_stage=2, offload="cpu"), on_cuda=True)
    assert settings is not None
    assert "offload_param" not in settings["zero_optimization"]


@pytest.mark.parametrize("compiles", [False, True])
def test_products_are_pytorchs_where_layers_are_compiled(compiles):
    settings = deepspeed_settings(EngineParams(zero_stage=3, compiles=compiles), on_cuda=True)
    assert settings is not None
    assert HfTrainerDeepSpeedConfig(settings).config["zero_optimization"]["memory_efficient_linear"] is not compiles


def small_model() -> Qwen2ForCausalLM:
    return Qwen2ForCausalLM(
        Qwen2Config(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=2)
    )


@pytest.mark.parametrize(("limit", "is_whole"), [(10_000_000, True), (1_000, False)])
def test_a_layers_weights_are_fetched_together_unless_it_is_large(monkeypatch, limit, is_whole):
    monkeypatch.setattr(sharding, "_FETCHED_AHEAD", limit)
    model = small_model()
    sharding.fetch_whole_layers(model)
    assert get_z3_leaf_modules(model) == ([*model.model.layers] if is_whole else [])


@pytest.mark.slow
def test_adapters_learn_under_zero_3_what_they_learn_without(tmp_path):
    """Below a frozen embedding nothing needs a gradient, for which whole layers would wait."""
    found = {}
    for stage in (0, 3):
        folder = tmp_path / str(stage)
        folder.mkdir()
        found[stage] = rows(run("adapters", {"zero_stage": stage}, folder))["adapters"]
    assert_alike(found[3], found[0])


@pytest.mark.slow
def test_weights_that_are_kept_between_the_passes_are_fetched_once_and_learn_the_same(tmp_path):
    found, last = {}, {}
    for keeps_weights in (False, True):
        folder = tmp_path / str(keeps_weights)
        folder.mkdir()
        engine = {"zero_stage": 3, "keeps_weights": keeps_weights}
        *found[keeps_weights], last[keeps_weights] = rows(run("fetched", engine, folder))["fetched"]
    assert_alike(found[True], found[False])
    assert last[True]["fetches"] == last[True]["weights"] == last[False]["weights"]
    assert last[False]["fetches"] > 1.5 * last[False]["weights"]


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        pytest.param({"offload": "cpu"}, "needs zero_stage 2 or 3, not 0", id="nothing to offload"),
        pytest.param({"zero_stage": 2, "offload": "nvme", "nvme_folder": "/x"}, "needs zero_stage 3", id="nvme"),
        pytest.param({"zero_stage": 3, "offload": "nvme"}, "and nvme_folder", id="nvme without a folder"),
        pytest.param({"keeps_weights": True}, "keeps_weights needs zero_stage 3", id="nothing to keep"),
        pytest.param(
            {"zero_stage": 3, "offload": "cpu", "keeps_weights": True}, "without offload", id="kept and offloaded"
        ),
        pytest.param({"nodes": 2}, "need an address", id="nodes that cannot meet"),
        pytest.param({"generator": "vllm"}, "needs vllm_url", id="a server nobody knows"),
        pytest.param({"processes": 0}, "greater than 0", id="no process"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(engine, said):
    with pytest.raises(ValidationError, match=said):
        EngineParams(**engine)


def test_batches_that_cannot_be_shared_evenly_are_refused(tmp_path):
    params = dataclasses.replace(load_params(), engine=EngineParams(processes=5))
    said = r"sft.batch_size is 8, which 5 processes cannot share evenly"
    with pytest.raises(ParamsError, match=said), trainers(params, folder=tmp_path):
        pass


def test_the_default_trains_in_this_process_alone(tmp_path):
    with trainers(load_params(), folder=tmp_path) as crew:
        assert crew.train(divmod, 7, 2) == (3, 1)
    assert not list(tmp_path.iterdir())
