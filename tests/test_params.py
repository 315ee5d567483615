from pathlib import Path

import pytest
import yaml

from tasks.errors import ParamsError
from tasks.params import apply_profile, load_params, parse_yaml, read_document, write_yaml


@pytest.fixture
def edited(tmp_path):
    """Writes params.yaml with some dotted keys set (or removed, for None) and returns its path."""

    def write(changes: dict) -> Path:
        document = read_document(Path("params.yaml"))
        for dotted, value in changes.items():
            *parents, last = dotted.split(".")
            section = document
            for name in parents:
                section = section[name]
            section[last] = value
        path = tmp_path / "params.yaml"
        path.write_text(yaml.safe_dump(document))
        return path

    return write


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        pytest.param("judge.rounds", 2, "greater than or equal to 5", id="out of range"),
        pytest.param("judge.warmup", 3, "unknown key", id="misspelt"),
        pytest.param("sft.steps", "100", "valid integer", id="a number in quotes"),
        pytest.param("sft.steps", True, "valid integer", id="a truth value for a number"),
        pytest.param(
            "contrastive_rl.exemplars", "best", "'buckets', 'islands', 'random' or 'none'", id="not one of the choices"
        ),
        pytest.param("contrastive_rl.reward_clip", float("nan"), "finite", id="not a number"),
        pytest.param("contrastive_rl.reward_clip", 0.5, "greater than 0.5", id="no room for speed"),
        pytest.param("seed", -1, "greater than or equal to 0", id="a negative seed"),
        pytest.param("seed", 1 << 32, "less than 4294967296", id="a seed of more than 32 bits"),
        pytest.param("judge.device", "gpu", "pattern", id="unknown device"),
        pytest.param("extra", {}, "unknown key", id="unknown section"),
        pytest.param("judge.accelerators", "H100", "must be a list such as [H100]", id="a text for a list"),
        pytest.param(
            "retrain.cron",
            "0 3 * *",
            'must be five fields with a space between each, such as "0 3 * * 0"',
            id="four fields of cron",
        ),
        pytest.param("retrain.timezone", "Mars/X", '"Europe/Berlin"', id="no time zone"),
        pytest.param("retrain.timezone", "Europe", '"Europe/Berlin"', id="a folder of time zones"),
        pytest.param("retrain.timezone", "../etc/passwd", '"Europe/Berlin"', id="a path for a time zone"),
        pytest.param("retrain.timezone", "", '"Europe/Berlin"', id="an empty time zone"),
    ],
)
def test_a_mistake_is_named_with_its_dotted_path_and_value(edited, key, value, said):
    with pytest.raises(ParamsError) as caught:
        load_params(edited({key: value}))
    assert f"  {key}: " in str(caught.value)
    assert said in str(caught.value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("node-0:29400", None),
        ("node-0:65535", None),
        ("node-0:65536", "the port must be 1 to 65535"),
        ("node-0:0", "the port must be 1 to 65535"),
        ("node-0", "pattern"),
    ],
)
def test_an_address_has_a_port_that_there_is(edited, address, said):
    path = edited({"engine": {"address": address}})
    if said is None:
        assert load_params(path).engine.address == address
    else:
        with pytest.raises(ParamsError, match=rf"engine\.address: .*{said}.*{address}"):
            load_params(path)


ENDPOINT = {
    "base_url": "http://127.0.0.1:8000/v1",
    "model": "m",
    "key_variable": None,
    "prompt_usd_per_million": 0.0,
    "answer_usd_per_million": 0.0,
}


@pytest.mark.parametrize(
    ("name", "changes", "providers", "said"),
    [
        pytest.param("m", {}, ["m", "other"], "without an entry under generators: other", id="unknown provider"),
        pytest.param("m", {}, ["m", "m"], "named twice", id="a provider twice"),
        pytest.param("sft", {}, ["builtin"], "may not be called sft", id="a policy's name"),
        pytest.param("M/1", {}, ["builtin"], "pattern", id="a name that is none"),
        pytest.param("m", {"prompt_usd_per_million": 1.0}, ["m"], "max_usd must be set", id="a price and no limit"),
        pytest.param(
            "m", {"prompt_usd_per_million": -1.0}, ["builtin"], "greater than or equal", id="a negative price"
        ),
        pytest.param("m", {"base_url": "http://key@host/v1"}, ["builtin"], "pattern", id="a secret in the address"),
        pytest.param("m", {"base_url": "host/v1"}, ["builtin"], "pattern", id="no address"),
        pytest.param("m", {"key_variable": "sk-123"}, ["builtin"], "pattern", id="a key for a variable"),
    ],
)
def test_generators_that_make_no_sense_are_refused(edited, name, changes, providers, said):
    generators = {name: ENDPOINT | changes}
    with pytest.raises(ParamsError, match=said):
        load_params(edited({"generate_variants.generators": generators, "generate_variants.providers": providers}))


def test_generators_in_use_come_in_the_order_of_the_providers(edited):
    generators = dict.fromkeys(("a", "b", "c"), ENDPOINT)
    path = edited({"generate_variants.generators": generators, "generate_variants.providers": ["c", "builtin", "a"]})
    assert list(load_params(path).generate_variants.generators_in_use) == ["c", "a"]


def test_all_mistakes_are_told_at_once(edited):
    with pytest.raises(ParamsError, match=r"3 mistake\(s\)") as caught:
        load_params(edited({"judge.trials": 0, "judge.warmup": 3, "sft.batch_size": -1}))
    assert all(key in str(caught.value) for key in ("judge.trials", "judge.warmup", "sft.batch_size"))


def test_a_missing_key_is_named(edited, tmp_path):
    path = edited({})
    document = yaml.safe_load(path.read_text())
    del document["sft"]["steps"]
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(ParamsError, match=r"sft\.steps: missing key"):
        load_params(path)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("seed: [", id="not YAML"),
        pytest.param("- 1", id="not a mapping"),
        pytest.param("", id="empty"),
    ],
)
def test_a_file_that_is_not_params_is_refused_by_name(tmp_path, text):
    path = tmp_path / "params.yaml"
    path.write_text(text)
    with pytest.raises(ParamsError, match=str(path)):
        load_params(path)


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(ParamsError, match="nowhere"):
        load_params(tmp_path / "nowhere.yaml")


def test_a_profile_changes_only_what_it_names():
    document = {"seed": 0, "sft": {"steps": 9, "batch_size": 4}, "profiles": {"small": {"sft": {"steps": 1}}}}
    assert apply_profile(document, "small") == {"seed": 0, "sft": {"steps": 1, "batch_size": 4}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3),
        ("5E+2", 500.0),
        ("-2.e-1", -0.2),
        (".5e1", 5.0),
        ("1.5e3", 1500.0),
        ("0.001", 0.001),
        ("12", 12),
        ("1e-3x", "1e-3x"),
        ("e5", "e5"),
        ('"1e-3"', "1e-3"),
    ],
)
def test_numbers_are_written_as_everywhere_else(text, value):
    read = parse_yaml(text)
    assert (read, type(read)) == (value, type(value))
    assert parse_yaml(write_yaml({"key": read})) == {"key": read}


def test_a_file_may_say_1e_3_for_a_thousandth(tmp_path):
    text = Path("params.yaml").read_text()
    (tmp_path / "params.yaml").write_text(text.replace("learning_rate: 0.002\n", "learning_rate: 1e-3\n", 1))
    assert load_params(tmp_path / "params.yaml").sft.learning_rate == 0.001


def test_a_model_below_the_users_home_is_found_there(edited, monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    assert load_params(edited({"policy.model": "~/models/x"})).policy.model == "/home/somebody/models/x"
    assert load_params(edited({"policy.model": "owner/name"})).policy.model == "owner/name"


def test_an_unknown_profile_is_refused_with_those_there_are():
    with pytest.raises(ParamsError, match="no profile 'big'; there are: small"):
        apply_profile({"profiles": {"small": {}}}, "big")


@pytest.mark.parametrize("name", sorted(read_document(Path("params.yaml"))["profiles"]))
def test_every_profile_gives_params_that_load(tmp_path, name):
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump(apply_profile(read_document(Path("params.yaml")), name)))
    load_params(path)
