"""A policy that comes with code, or with weights that are code, is refused and nothing of it runs."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tasks.errors import PolicyError
from tasks.training.policy import load_policy, save_policy
from tests.training_builders import SCALED, policy, policy_params

ROOT = Path(__file__).parents[1]

CODE = """
from pathlib import Path

Path({trap!r}).touch()

from transformers import Lfm2Config as Config
from transformers import Lfm2ForCausalLM as Model
from transformers import PreTrainedTokenizerFast as Tokenizer
"""


class Trap:
    """Unpickling it leaves a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture
def saved(tmp_path):
    folder = tmp_path / "policy"
    save_policy(policy(), folder)
    return folder


@pytest.fixture
def trap(tmp_path):
    """The file that appears when something of a policy is run."""
    return tmp_path / "sprung"


def change(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors"])
@pytest.mark.parametrize(
    "save", [torch.save, lambda trap, path: path.write_bytes(pickle.dumps(trap))], ids=["of torch", "bare"]
)
def test_weights_that_are_a_pickle_are_refused(saved, trap, name, save):
    (saved / "model.safetensors").unlink()
    save(Trap(trap), saved / name)
    with pytest.raises(PolicyError, match="cannot be loaded"):
        load_policy(saved, policy_params())
    assert not trap.exists()


def test_a_pickle_beside_sound_weights_is_not_read(saved, trap):
    torch.save(Trap(trap), saved / "pytorch_model.bin")
    assert load_policy(saved, policy_params()).tokenizer(SCALED)
    assert not trap.exists()


def test_a_model_of_code_of_its_own_is_refused(saved, trap):
    (saved / "own_code.py").write_text(CODE.format(trap=str(trap)))
    classes = {"AutoConfig": "own_code.Config", "AutoModelForCausalLM": "own_code.Model"}
    change(saved / "config.json", auto_map=classes, model_type="of_its_own")
    with pytest.raises(PolicyError, match="cannot be loaded"):
        load_policy(saved, policy_params())
    assert not trap.exists()


def test_code_that_comes_with_a_known_kind_of_model_is_not_run(saved, trap):
    (saved / "own_code.py").write_text(CODE.format(trap=str(trap)))
    change(saved / "config.json", auto_map={"AutoModelForCausalLM": "own_code.Model"})
    change(saved / "tokenizer_config.json", auto_map={"AutoTokenizer": [None, "own_code.Tokenizer"]})
    assert load_policy(saved, policy_params()).model.__class__.__module__.startswith("transformers.")
    assert not trap.exists()


def test_the_traps_work(saved, trap):
    """Else the tests above could not fail."""
    pickle.loads(pickle.dumps(Trap(trap)))
    assert trap.exists()
    trap.unlink()
    (saved / "own_code.py").write_text(CODE.format(trap=str(trap)))
    change(saved / "config.json", auto_map={"AutoModelForCausalLM": "own_code.Model"})
    program = "import sys, transformers as t; "
    program += "t.AutoModelForCausalLM.from_pretrained(sys.argv[1], trust_remote_code=True)"
    # In a process of its own, since transformers goes on to believe that its own class is the folder's.
    environment = os.environ | {"HF_HOME": str(saved.parent / "hub")}
    subprocess.run([sys.executable, "-c", program, str(saved)], env=environment, check=True, capture_output=True)
    assert trap.exists()


def test_nothing_of_ours_reads_a_pickle_or_yaml_that_makes_objects():
    rules = "S301,S302,S403,S506"  # pickle, marshal, the import of either, yaml.load
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--select", rules, "tasks", "flows"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


OWN_WORDS = {"torch.load(": ["flows/following.py"]}
"""Where a process reads what the stage that started it has just written into a folder of its own."""


@pytest.mark.parametrize("words", ["torch.load(", "trust_remote_code=True", "allow_pickle=True"])
def test_nothing_of_ours_asks_for_code(words):
    sources = [path for folder in ("tasks", "flows") for path in (ROOT / folder).rglob("*.py")]
    assert sources
    found = [str(path.relative_to(ROOT)) for path in sources if words in path.read_text()]
    assert found == OWN_WORDS.get(words, [])
