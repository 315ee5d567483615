"""A judge keeps its promises when problems are bad, processes die and machines lack what it needs."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tasks.errors import MachineError, WorkerError
from tasks.judge import judge as judge_module
from tasks.judge.baselines import BASELINES, baseline_candidate
from tasks.judge.fork_server import PROGRAM, ForkServer
from tasks.judge.judge import Judge
from tasks.judge.timing import PROTOCOLS
from tasks.judge.verdict import Status, Track, Verdict
from tests.judge_builders import KERNELS, PARAMS, RIGHT, Kernel, kernel, problem, problem_of, running, with_source

SAME = kernel(KERNELS / "honest/same.py")
MODEL = "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n    def forward(self, x):\n        {}\n\n\n"
GENERATORS = "def get_inputs():\n    {}\n\n\ndef get_init_inputs():\n    return []\n"
NORMAL = "return [torch.randn(32, 32)]"


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(PARAMS) as judge:
        yield judge


def judged(judge: Judge, kernel: Kernel) -> Verdict:
    return judge.judge(kernel.problem, kernel.candidate, seed=0)


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 40
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def test_a_verdict_says_all_about_itself(judge: Judge) -> None:
    verdict = judged(judge, kernel(KERNELS / "honest/reads_weights.py"))
    assert verdict.status in RIGHT
    assert verdict.protocol == PROTOCOLS["cpu"]
    assert verdict.device == judge.device != ""
    assert {"torch", "python", "walls"} <= set(verdict.environment)
    assert {"fresh_inputs", "called_twice", "output_kept", "changed_weights", "negated_inputs"} <= {
        check.name for check in verdict.checks
    }
    assert verdict.max_error is not None
    assert verdict.max_error <= 1
    assert verdict.seconds > 0


def test_a_verdict_survives_json(judge: Judge) -> None:
    for name in ("honest/same", "hostile/nan_wildcard", "hostile/hostile_exception"):
        verdict = judged(judge, kernel(KERNELS / f"{name}.py"))
        assert Verdict.from_json(json.loads(json.dumps(verdict.to_json(), allow_nan=False))) == verdict


@pytest.mark.parametrize(
    ("model", "inputs", "words"),
    [
        pytest.param("return torch.zeros_like(x)", NORMAL, "does not depend on its inputs", id="constant"),
        pytest.param("return x + torch.randn_like(x)", NORMAL, "different outputs for equal inputs", id="random"),
        pytest.param(
            "return torch.dropout(x, 0.5, True)",
            NORMAL,
            "let its caller give it what is drawn",
            id="draws in either mode",
        ),
        pytest.param(
            "self.calls = getattr(self, 'calls', 0) + 1; return x * self.calls",
            NORMAL,
            "what earlier calls left in buffers or attributes",
            id="depends on earlier calls",
        ),
        pytest.param(
            "with torch.enable_grad(): (x.requires_grad_() ** 2).sum().backward()\n        return x.grad.clone()",
            NORMAL,
            "or on its inputs, such as x.grad",
            id="leaves something on its input",
        ),
        pytest.param("return x / 0 * 0", NORMAL, "not numbers", id="not a number"),
        pytest.param("return undefined", NORMAL, "NameError", id="raises"),
        pytest.param("return x", "return 3", "not a list", id="inputs are no list"),
        pytest.param("return x", "return [open('/dev/null')]", "TextIOWrapper", id="input of another kind"),
        pytest.param("import os; os._exit(3)", NORMAL, "does not run", id="exits"),
        pytest.param(
            "return x * 2", "return [torch.randn(torch.randint(1, 99, ()))]", "other shapes", id="shapes change"
        ),
    ],
)
def test_a_bad_problem_is_not_the_candidates_fault(judge: Judge, model: str, inputs: str, words: str) -> None:
    bad = problem_of(MODEL.format(model) + GENERATORS.format(inputs))
    verdict = judge.judge(bad, SAME.candidate, seed=0)
    assert verdict.status is Status.BAD_PROBLEM
    assert words in verdict.detail


@pytest.mark.parametrize(
    "words",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`",
    ],
)
def test_a_device_that_others_have_filled_is_not_the_references_fault(judge: Judge, words: str) -> None:
    text = MODEL.format(f'raise RuntimeError("{words}")')
    full = problem_of(text + GENERATORS.format(NORMAL))
    for _ in range(2):  # nor is it remembered as such
        with pytest.raises(WorkerError, match="no memory left for the reference"):
            judge.judge(full, SAME.candidate, seed=0)


def test_weights_that_change_nothing_make_a_bad_problem(judge: Judge) -> None:
    source = problem("linear_relu").source.replace("torch.relu(self.linear(x))", "x + 0 * self.linear(x)")
    verdict = judge.judge(problem_of(source), kernel(KERNELS / "honest/reads_weights.py").candidate, seed=0)
    assert verdict.status is Status.BAD_PROBLEM
    assert "weights" in verdict.detail


@pytest.mark.parametrize("name", ["linear_relu", "row_softmax", "row_statistics", "gather_rows"])
def test_the_reference_as_a_candidate_is_correct(judge: Judge, name: str) -> None:
    verdict = judge.judge(problem(name), baseline_candidate(problem(name), "eager"), seed=0)
    assert verdict.status in RIGHT, verdict.detail
    assert verdict.max_error == 0


@pytest.mark.slow
def test_the_compile_baseline_is_correct_and_on_the_graph_track() -> None:
    """Twenty seconds where headers must be compiled first, a few where they are cached."""
    with Judge(dataclasses.replace(PARAMS, timeout_s=120.0, memory_bytes=4 << 30)) as judge:
        verdict = judge.judge(problem("linear_relu"), baseline_candidate(problem("linear_relu"), "compile"), seed=0)
    assert verdict.status in RIGHT, verdict.detail
    assert verdict.track in (Track.GRAPH, None)


@pytest.mark.parametrize("baseline", BASELINES)
def test_a_baseline_keeps_what_the_reference_constructs(baseline: str) -> None:
    source = baseline_candidate(problem("gather_rows"), baseline).source
    assert "class ModelNew(Model):" in source
    assert "torch.randn(rows, features)" in source
    assert "get_inputs" not in source
    assert source.count("import torch\n") == 1


def test_two_threads_judge_at_once(judge: Judge) -> None:
    jobs = [SAME, kernel(KERNELS / "hostile/wrong_dtype.py"), kernel(KERNELS / "honest/list_of_outputs.py")] * 3
    with ThreadPoolExecutor(4) as pool:
        verdicts = list(pool.map(lambda job: judged(judge, job), jobs))
    assert [verdict.candidate_id for verdict in verdicts] == [job.candidate.candidate_id for job in jobs]
    assert all((verdict.status is Status.WRONG_OUTPUT) == (index % 3 == 1) for index, verdict in enumerate(verdicts))


def test_the_callers_thread_gets_its_cores_back(judge: Judge) -> None:
    before = os.sched_getaffinity(0)
    judged(judge, SAME)
    assert os.sched_getaffinity(0) == before


def test_a_dead_fork_server_is_replaced(judge: Judge) -> None:
    judged(judge, SAME)
    assert judge._server is not None
    os.kill(judge._server._process.pid, signal.SIGKILL)
    assert judged(judge, SAME).status in RIGHT


def test_a_fork_server_that_dies_meanwhile_is_not_the_candidates_fault(judge: Judge) -> None:
    slow = with_source(SAME, f"import time\n\ntime.sleep(1)\n{SAME.source}")
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(judged, judge, slow)
        time.sleep(0.5)
        assert judge._server is not None
        os.kill(judge._server._process.pid, signal.SIGKILL)
        assert future.result().status in RIGHT


class KilledAtFirst(subprocess.Popen):
    """A real fork server that is killed at once, so many times; other processes are left alone."""

    times: ClassVar[int]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if PROGRAM in self.args and type(self).times:
            type(self).times -= 1
            self.kill()


def test_a_fork_server_that_is_killed_while_it_starts_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KilledAtFirst, "times", 2, raising=False)
    monkeypatch.setattr("tasks.judge.fork_server.subprocess.Popen", KilledAtFirst)
    with Judge(PARAMS) as judge:
        assert KilledAtFirst.times == 0
        assert judged(judge, SAME).status in RIGHT


def test_a_fork_server_that_is_killed_every_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KilledAtFirst, "times", 99, raising=False)
    monkeypatch.setattr("tasks.judge.fork_server.subprocess.Popen", KilledAtFirst)
    with pytest.raises(MachineError, match="ended by SIGKILL 3 times while it started"), Judge(PARAMS):
        pass


def test_a_judge_that_is_closed_amid_a_judgement_starts_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = []

    class Counted(ForkServer):
        def __init__(self, *arguments: Any) -> None:
            servers.append(self)
            super().__init__(*arguments)

    monkeypatch.setattr(judge_module, "ForkServer", Counted)
    asleep = with_source(
        SAME, f"import subprocess, time\nsubprocess.Popen(['sleep', '641'])\ntime.sleep(60)\n{SAME.candidate.source}"
    )
    with ThreadPoolExecutor(1) as pool:
        with Judge(PARAMS) as judge:
            judgement = pool.submit(judged, judge, asleep)
            assert eventually(lambda: running("sleep 641"))
        with pytest.raises(MachineError, match="not open"):
            judgement.result(timeout=30)
    assert len(servers) == 1


@pytest.mark.parametrize("program", ["tasks.judge.zygote", "tests.zygote_without_walls"])
def test_a_killed_referee_leaves_no_process_behind(program: str) -> None:
    script = (
        "from tests.judge_builders import *\n"
        "from tasks.judge import fork_server\n"
        "from tasks.judge.judge import Judge\n"
        f"fork_server.PROGRAM = {program!r}\n"
        "hang = SAME.candidate.__class__(problem_id='x', origin='test', source='import subprocess\\n'\n"
        '    \'subprocess.Popen(["sleep", "614"], start_new_session=True)\\nModelNew = 1\\nwhile True: pass\')\n'
        "with Judge(PARAMS) as judge:\n"
        "    judge.judge(SAME.problem, hang, seed=0)\n"
    ).replace("SAME", "kernel(KERNELS / 'honest/same.py')")
    others = set(running(program))
    referee = subprocess.Popen([sys.executable, "-c", script])
    assert eventually(lambda: bool(running("sleep 614")))
    started = set(running(program)) - others - {referee.pid}
    assert started
    referee.kill()
    referee.wait()
    assert eventually(lambda: not running("sleep 614"))
    assert eventually(lambda: not started & set(running(program)))


def test_an_environment_that_a_link_leads_to_from_a_hidden_folder_is_found(tmp_path: Path) -> None:
    link = tmp_path / "environment"  # below /tmp, which workers see empty
    link.symlink_to(sys.prefix)
    program = (
        "from tasks.judge.judge import Judge\n"
        "from tests.judge_builders import PARAMS\n"
        "with Judge(PARAMS) as judge:\n"
        "    print(judge.environment['walls'])\n"
    )
    told = subprocess.run([link / "bin/python", "-c", program], capture_output=True, text=True, timeout=120)
    assert told.returncode == 0, told.stderr
    assert "limits" in told.stdout


def test_a_device_that_is_not_there_yet_is_refused() -> None:
    with pytest.raises(MachineError, match="cuda:0"), Judge(dataclasses.replace(PARAMS, device="cuda:0")):
        pass


def test_a_judge_that_is_not_open_says_so() -> None:
    with pytest.raises(MachineError, match="not open"):
        Judge(PARAMS).judge(SAME.problem, SAME.candidate, seed=0)
