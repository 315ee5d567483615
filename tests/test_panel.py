"""Judges on many devices: real Ray clusters of two nodes on this machine, one of which dies; and what is refused."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from judge_builders import PARAMS, problem_of
from kernelbench_builders import reference, released, right, write_lines, wrong

from flows.cli import main
from flows.kernelbench.docket import JOURNAL, Docket, DocketCase, judge_all
from flows.panels.chamber import Chamber
from flows.panels.cluster import Place, places
from flows.panels.judges import open_judge
from tasks.errors import MachineError
from tasks.judge.batch import changed
from tasks.params import JudgeParams, LongParams
from tasks.variants.candidate import Candidate

ROOT = Path(__file__).parent.parent
QUICK = changed(PARAMS, trials=2, settled_error=0.12)
NUM_BEFORE_DEATH = 5
RAYS_OWN = re.compile("ray::(DashboardAgent|RuntimeEnvAgent)")
"""Helpers without work or device, which take a minute to notice that everything else was killed."""
END_S = 30.0
START_S = 120.0
"""For a machine of Ray's to join, and a judge to start there, where others start processes too."""
SMALL = {"include_dashboard": False, "object_store_memory": 80 << 20}


@pytest.fixture(scope="module")
def cluster():
    """A head and another node, each with one core."""
    pytest.importorskip("ray", reason="Ray is not installed")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **SMALL})
    cluster.add_node(num_cpus=1, **SMALL)
    yield cluster
    cluster.shutdown()


def cases():
    """Twenty candidates for two problems: right, wrong and crashing ones, and one without a program."""
    texts = {scale: [right(scale), wrong(scale), right(scale).replace("torch.relu", "torch.none")] for scale in (1, 2)}
    chosen = [(scale, f"{texts[scale][number % 3]}\n# {number}\n") for scale in (1, 2) for number in range(9)]
    return [
        DocketCase(
            problem=(problem := problem_of(reference(scale), name=f"times_{scale}")),
            candidate=Candidate(problem_id=problem.problem_id, source=source, origin="test"),
        )
        for scale, source in [*chosen, (1, right(1)), (2, "import os\n")]
    ]


def judged(params, folder, during=lambda journal: None):
    """Rows of the docket after everything was judged."""
    thread = threading.Thread(target=during, args=(folder / JOURNAL,), daemon=True)
    with Docket.open(folder) as docket, open_judge(params) as judge:
        assert judge.workers == 2
        thread.start()
        asked = {"workers": judge.workers, "stop_at": float("inf"), "is_alone": True}
        session = judge_all(judge, docket.pending(cases(), judge), docket, **asked)
        thread.join(END_S)
        assert not session.failures
        assert {answer.verdict.device for answer in docket.answers} == {judge.device}
        return [(answer.verdict.candidate_id, outcome(answer.verdict)) for answer in docket.answers]


def outcome(verdict):
    """Whether a timing settles depends on what else the machine does."""
    return "correct" if verdict.status == "unstable" else verdict.status.value


@pytest.mark.slow
def test_judges_are_replaced_when_their_processes_die_and_when_a_machine_comes_back(cluster):
    case = cases()[0]
    with open_judge(changed(QUICK, ray=cluster.address, workers=1)) as judge:
        num_judges = len(chambers())
        assert num_judges == judge.workers == 2
        for pid in chambers():
            os.kill(pid, signal.SIGKILL)
        assert outcome(judge.judge(case.problem, case.candidate, seed=0)) == "correct"
        cluster.remove_node(next(iter(cluster.worker_nodes)))
        cluster.add_node(num_cpus=1, **SMALL)
        deadline = time.monotonic() + START_S
        while len(chambers()) < num_judges:
            assert time.monotonic() < deadline
            with ThreadPoolExecutor(num_judges) as pool:  # a judge that died is missed when it is asked
                asked = [pool.submit(judge.judge, case.problem, case.candidate, seed=0) for _ in range(num_judges)]
                assert {outcome(each.result()) for each in asked} == {"correct"}
    assert not chambers()


@pytest.mark.slow
def test_progress_is_heard_and_whoever_hears_it_can_call_the_judgement_off(cluster):
    case = cases()[0]
    params = changed(QUICK, ray=cluster.address, workers=1, tier="long", long=LongParams(window_s=30.0))
    heard = []

    def listen(share, words):
        heard.append((share, words))
        raise InterruptedError("enough")

    started = time.monotonic()
    with open_judge(params) as judge, pytest.raises(InterruptedError):
        judge.judge(case.problem, case.candidate, seed=0, on_progress=listen)
    assert time.monotonic() - started < END_S
    assert 0 <= heard[0][0] < 1


@pytest.mark.slow
def test_when_a_machine_dies_its_candidates_are_judged_elsewhere_and_none_twice(cluster, tmp_path, capfd):
    def kill_half_way(journal):
        while len(journal.read_text().splitlines()) < NUM_BEFORE_DEATH:
            time.sleep(0.05)
        cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)

    spread = judged(changed(QUICK, ray=cluster.address, workers=1), tmp_path / "spread", kill_half_way)
    said = capfd.readouterr()
    assert "is lost" in said.err
    assert "(raylet)" not in said.out + said.err
    assert len(cluster.worker_nodes) == 0
    alone = judged(QUICK, tmp_path / "alone")
    assert len(spread) == len(dict(spread)) == len(cases())
    assert dict(spread) == dict(alone)
    assert set(dict(spread).values()) >= {"correct", "wrong_output", "crashed"}


def test_other_code_is_not_asked():
    with pytest.raises(MachineError, match="another version of this package"):
        Chamber().open(QUICK, "another")


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """The current folder, outside of any project, with a file of one problem and a kernel for it."""
    monkeypatch.chdir(tmp_path)
    return write_lines(tmp_path / "kernels.json", *[released(number, code=right(number)) for number in range(1, 9)])


def command(*more):
    return ["kernelbench", "kernels.json", "--candidates", "kernels.json", "--out", "out", *more]


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        pytest.param(["--ray", "nowhere"], 1, "neither HOST:PORT nor auto nor local", id="no address"),
        pytest.param(["--ray", "local", "--device", "cuda:0"], 1, "must be cuda or cpu", id="one device of many"),
        pytest.param(["--accelerator", "H100"], 1, "device must be cuda", id="a model of processor"),
        pytest.param(["--ray", "127.0.0.1:1"], 3, "nobody answers at 127.0.0.1:1", id="nobody there"),
        pytest.param(["--ray", "no.such.host.invalid:6379"], 3, "nobody answers", id="no such machine"),
    ],
)
@pytest.mark.usefixtures("kernels")
def test_what_cannot_be_is_refused_in_words(options, status, words, capsys):
    if status == 3:
        pytest.importorskip("ray", reason="Ray is not installed")
    assert main(command(*options)) == status
    assert words in capsys.readouterr().err


@pytest.mark.usefixtures("kernels")
def test_who_lacks_ray_is_told_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(command("--device", "cuda")) == 3
    said = capsys.readouterr().err
    assert "pip install -c constraints.txt -e '.[ray]'" in said
    assert "judge.device to cpu" in said


@pytest.mark.usefixtures("kernels")
def test_a_cluster_without_the_devices_asked_for_is_refused(cluster, capsys):
    asked = ["--ray", cluster.address, "--device", "cuda"]
    assert main(command(*asked)) == 3
    assert "has no GPU" in capsys.readouterr().err
    # Ray believes what a machine says about itself, the judge does not.
    node = cluster.add_node(num_cpus=4, num_gpus=2, resources={"accelerator_type:H100": 1}, **SMALL)
    try:
        assert main(command(*asked, "--accelerator", "H200")) == 1
        assert "has no H200; its GPUs are: H100" in capsys.readouterr().err
        assert main(command(*asked)) == 3
        said = capsys.readouterr().err
    finally:
        cluster.remove_node(node)
    assert "there is no cuda:0 here" in said


def test_each_gpu_gets_a_judge_and_each_model_a_panel():
    def gpu(model, num_cpus):
        return Place(num_cpus=num_cpus, num_gpus=1, accelerator=model)

    machines = [
        {"CPU": 16.0, "GPU": 2.0, "accelerator_type:H100": 1.0},
        {"CPU": 8.0, "GPU": 1.0, "accelerator_type:H200": 1.0},
        {"CPU": 4.0},
        {"CPU": 2.0, "GPU": 4.0, "accelerator_type:H100": 1.0},
        {"CPU": 8.0, "GPU": 1.0},
    ]
    h100, h200, unnamed = (
        [gpu("H100", 6)] * 2 + [gpu("H100", 0)] * 4,
        [gpu("H200", 6)],
        [gpu(None, 6)],
    )
    asked = changed(JudgeParams(), device="cuda", workers=6)
    assert places(machines, asked) == [h100, h200, unnamed]
    assert places(machines, changed(asked, accelerators=("H200",))) == [h200]
    assert [place.workers for place in h100] == [6, 6, 1, 1, 1, 1]
    on_processors = places(machines, changed(asked, device="cpu"))
    assert on_processors == [[Place(num_cpus=count) for count in (6, 6, 4, 2, 6)]]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_whoever_is_ended_leaves_no_process_behind(number, kernels):
    pytest.importorskip("ray", reason="Ray is not installed")
    program = [sys.executable, "-m", "flows.cli", *command("--ray", "local", "--baselines", "eager")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(program, env=environment, stderr=subprocess.PIPE, text=True) as process:
        while not (kernels.parent / "out" / JOURNAL).exists() or not (kernels.parent / "out" / JOURNAL).read_text():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.1)
        started = {each for each in descendants(process.pid) if not RAYS_OWN.search(command_line(each[0]))}
        assert len(started) > 3
        process.send_signal(number)
        said = process.communicate(timeout=END_S)[1]
    deadline = time.monotonic() + END_S
    while (left := [pid for pid in started if is_running(pid)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left
    assert "Traceback" not in said
    assert "(raylet" not in said


def descendants(pid):
    """Processes that a process has started, and theirs, with their start times: numbers are used again."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name), fields[19]] = int(fields[1])
    found, grown = set(), True
    while grown:
        pids = {pid} | {child for child, _ in found}
        grown = {child for child, parent in parents.items() if parent in pids} - found
        found |= grown
    return found


def chambers():
    """Processes of judges in clusters that this process has started."""
    return [pid for pid, _ in descendants(os.getpid()) if "ray::Chamber" in command_line(pid)]


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def is_running(process):
    pid, started = process
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[19] == started and fields[0] != "Z"
