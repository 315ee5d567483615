"""What one clone pushes to a remote on S3, another clone pulls; and there `dvc repro` finds nothing to do.

The stages are the project's own, but are not run here: DVC is told that what stands in their places is their output.
"""

import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from tests.secret_search import files_with
from tests.service_builders import free_ports
from tests.stage_runs import CLOSED, workspace
from tests.training_builders import SCALED

ROOT = Path(__file__).parents[1]
SECRET = "planted-secret-of-s3"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1"}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not all(map(find_spec, ("moto", "dvc_s3"))), reason="moto or dvc-s3 is not installed"),
]


def run(folder: Path, *command: str, said_no: bool = False, **changes: str) -> str:
    """What a command says, which must succeed, or fail where that is expected."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # dvc starts stages as `python`
    environment = os.environ | CREDENTIALS | {"PATH": path, "MLFLOW_TRACKING_URI": CLOSED, "DVC_NO_ANALYTICS": "1"}
    environment.pop("PREFECT_API_URL", None)
    done = subprocess.run(
        command, cwd=folder, env=environment | changes, capture_output=True, text=True, timeout=200, check=False
    )
    assert bool(done.returncode) == said_no, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    """The address of an S3 server with an empty bucket."""
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    with (tmp_path_factory.mktemp("s3") / "log").open("w") as log:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        server = subprocess.Popen(command, stdout=log, stderr=log)
    end = time.monotonic() + 60
    while not is_created(f"{url}/bucket"):
        assert server.poll() is None, "the server ended at its start"
        assert time.monotonic() < end
        time.sleep(0.1)
    yield url
    server.kill()
    server.wait()


def is_created(bucket: str) -> bool:
    try:
        with urllib.request.urlopen(urllib.request.Request(bucket, method="PUT"), timeout=10) as answer:
            return answer.status == 200
    except urllib.error.URLError:
        return False


@pytest.fixture(scope="module")
def clones(tmp_path_factory, s3):
    """One clone that pushed what its stages made, and another that pulled."""
    folder = tmp_path_factory.mktemp("clones")
    first = workspace(folder)
    for name in (".gitignore", ".dvc/config", ".dvc/.gitignore"):
        shutil.copy(ROOT / name, first / name)
    run(first, "git", "init", "--quiet", ".")
    run(first, "dvc", "remote", "add", "--default", "team", "s3://bucket/dvc")
    run(first, "dvc", "remote", "modify", "team", "endpointurl", s3)
    write_outputs(first)
    run(first, "dvc", "commit", "--force")
    run(first, "git", "add", "--all")
    run(first, "git", "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "--quiet", "-m", "Finished")
    run(first, "dvc", "push")
    second = folder / "second"
    run(folder, "git", "clone", "--quiet", str(first), str(second))
    run(second, "dvc", "pull")
    return first, second


def write_outputs(project: Path) -> None:
    """Something in the place of each output of each stage; in the place of a policy, one of that size."""
    from tasks.training.policy import save_policy
    from tests.training_builders import policy

    for number, stage in enumerate(yaml.safe_load((project / "dvc.yaml").read_text())["stages"].values()):
        for output in [*stage["outs"], *stage.get("metrics", ()), *stage.get("plots", ())]:
            path = project / (output if isinstance(output, str) else next(iter(output)))
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.name == "policy":
                save_policy(policy(seed=number), path)
            else:
                path.write_text(f'{{"made_by": "{path}"}}\n')


def test_in_the_other_clone_nothing_is_left_to_do(clones):
    _, second = clones
    said = run(second, "dvc", "repro")
    assert "Data and pipelines are up to date." in said
    assert run(second, "git", "status", "--porcelain") == ""


def test_a_policy_answers_the_same_in_both_clones(clones):
    import torch

    from tasks.params import load_params
    from tasks.training.policy import load_policy

    answers = []
    for clone in clones:
        policy = load_policy(clone / "data/sft/policy", load_params(clone / "params.yaml").policy)
        asked = torch.tensor([policy.tokenizer(SCALED).input_ids])
        answers.append(policy.model.generate(input_ids=asked, max_new_tokens=32, do_sample=False).tolist())
    assert len(answers[0][0]) > 32
    assert answers[0] == answers[1]


def test_a_changed_number_still_runs_what_depends_on_it(clones):
    """Else "nothing to do" would say nothing."""
    _, second = clones
    text = (second / "params.yaml").read_text()
    (second / "params.yaml").write_text(text.replace("batch_size: 4", "batch_size: 3", 1))
    said = run(second, "dvc", "repro", "--dry", "sft")
    (second / "params.yaml").write_text(text)
    assert "Running stage 'sft'" in said
    assert "Stage 'filter_variants' didn't change" in said


def test_credentials_are_written_nowhere(clones):
    assert files_with(SECRET, *clones) == []


def test_a_remote_that_does_not_answer_fails_the_push(clones):
    first, _ = clones
    run(first, "dvc", "remote", "add", "gone", "s3://bucket/dvc")
    run(first, "dvc", "remote", "modify", "gone", "endpointurl", CLOSED)
    said = run(first, "dvc", "push", "--remote", "gone", said_no=True, AWS_MAX_ATTEMPTS="1")
    assert "Could not connect to the endpoint URL" in said
