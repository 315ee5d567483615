"""The Ray cluster that judges sit on: one that somebody has started, or one of this machine that ends with us.

The only file that connects to Ray. What Ray would print is kept off the terminal; nothing is reported to anybody.
"""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.errors import MachineError, ParamsError
from tasks.params import JudgeParams

LOCAL = "local"
PROBE_S = 5.0
JOIN_S = 30.0  # Ray itself gives up after 60 s, and then ends this process without a word of ours
LEAVE_S = 30.0
STORE_BYTES = 128 << 20  # texts and verdicts are small; Ray would take a third of the memory
REMEDY = "`ray start` makes this machine a part of it, with the same token on both (docs/clusters.md)"
GPU_TYPE = "accelerator_type:"
UNNAMED = "some that Ray has no name for"
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_AUTO_CONNECT": "0",  # or a late question would start a cluster after we have left
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # silences a warning
}
OURS = {
    "RAY_worker_niceness": "0",  # judges that are nice are disturbed by any other program
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """What one judge has to itself: cores of a machine, and perhaps a GPU."""

    num_cpus: int
    num_gpus: int = 0
    accelerator: str | None = None
    """The GPU's model, if Ray has a name for it."""

    @property
    def workers(self) -> int:
        """How many candidates its judge takes at once."""
        return max(1, self.num_cpus)


@contextlib.contextmanager
def joined(params: JudgeParams) -> Iterator[list[list[Place]]]:
    """Be part of the cluster that params name.

    Yields:
        The places for judges by model of GPU; a single group for processors.

    Raises:
        MachineError: if there is no Ray here, no such cluster, or no device in it.
        ParamsError: if the cluster lacks an accelerator that was asked for.
    """
    address = params.ray or LOCAL
    ray = _ray(OURS if address == LOCAL else {})
    if ray.is_initialized():  # whoever has joined before us also leaves
        yield places(_machines(ray), params)
        return
    member = _Member(ray, address)
    try:
        member.join()
        yield places(_machines(ray), params)
    finally:
        member.leave()


def _ray(settings: Mapping[str, str]) -> Any:
    for name, value in {**QUIET, **settings}.items():  # read when Ray is imported, and by what it starts
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise MachineError(
            f"judging on several devices needs Ray, which is not installed here ({error}): "
            "pip install -c constraints.txt -e '.[ray]', or set judge.device to cpu or cuda:0 and judge.ray to null"
        ) from error
    return ray


class _Member:
    """Joins and leaves in a thread of its own: joining may hang, and elsewhere Ray would take over our signals.

    The thread lives as long as the membership, because a cluster of our own ends with the thread that started it.
    """

    def __init__(self, ray: Any, address: str) -> None:
        self._ray = ray
        self._address = address
        self._failed: Exception | None = None
        self._has_joined, self._is_leaving = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._stay, name="ray", daemon=True)

    def join(self) -> None:
        if ":" in self._address:
            _probe(self._address)
        self._thread.start()
        is_timely = self._has_joined.wait(JOIN_S)
        if self._failed is None and is_timely:
            return
        words = str(self._failed).strip().split("\n")[0] if self._failed else f"no answer within {JOIN_S:.0f} s"
        how = "" if self._address == LOCAL else f"; {REMEDY}"
        raise MachineError(f"the Ray cluster {self._address!r} cannot be joined: {words}{how}") from self._failed

    def leave(self) -> None:
        self._is_leaving.set()
        if self._has_joined.is_set():
            self._thread.join(LEAVE_S)

    def _stay(self) -> None:
        more = _own_cluster() if self._address == LOCAL else {}
        try:
            self._ray.init(address=self._address, log_to_driver=False, logging_level="CRITICAL", **more)
        except Exception as error:  # noqa: BLE001 - Ray raises what it likes; join tells it
            self._failed = error
        self._has_joined.set()
        if self._failed is None:
            # Else it writes to our output what it hears of machines that die, though told to be quiet; the seats tell.
            self._ray._private.worker.print_to_stdstream = lambda *_, **__: None
            self._is_leaving.wait()
            self._ray.shutdown()


def _own_cluster() -> dict[str, Any]:
    return {
        "num_cpus": len(os.sched_getaffinity(0)),
        "include_dashboard": False,
        "object_store_memory": STORE_BYTES,
    }


def _probe(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=PROBE_S).close()
    except (OSError, OverflowError) as error:
        raise MachineError(
            f"nobody answers at {address}: {error}; give the address that `ray start --head` printed"
        ) from error


def places(machines: Sequence[Mapping[str, float]], params: JudgeParams) -> list[list[Place]]:
    """Room for judges among what machines have, by model of GPU; a single group for processors."""
    if params.device == "cpu":
        counts = [int(each.get("CPU", 0)) for each in machines]
        found = [Place(num_cpus=min(params.workers, count)) for count in counts if count]
        if not found:
            raise MachineError("the Ray cluster has no core to judge on")
        return [found]
    by_model: dict[str, list[Place]] = {}
    for each in machines:
        if num_gpus := int(each.get("GPU", 0)):
            model = next((name.removeprefix(GPU_TYPE) for name in each if name.startswith(GPU_TYPE)), None)
            num_cpus = min(params.workers, int(each.get("CPU", 0)) // num_gpus)
            place = Place(num_cpus=num_cpus, num_gpus=1, accelerator=model)
            by_model.setdefault(model or UNNAMED, []).extend([place] * num_gpus)
    if not by_model:
        raise MachineError("the cluster, which may be this machine alone, has no GPU; judge on the device cpu")
    if missing := [name for name in params.accelerators if name not in by_model]:
        its = ", ".join(sorted(by_model))
        raise ParamsError(f"the Ray cluster has no {' and no '.join(missing)}; its GPUs are: {its}")
    return [by_model[name] for name in params.accelerators or sorted(by_model)]


def _machines(ray: Any) -> list[dict[str, float]]:
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]
