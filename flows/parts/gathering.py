"""How a stage and the other machines that train with it find each other: by a file in the folder that they share."""

import json
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from flows.engine import WORK
from tasks.errors import MachineError
from tasks.params import EngineParams

FOLDER = WORK / "following"
INVITATION = FOLDER / "invitation.json"
"""There while a stage waits for other machines; what a killed one leaves, the next writes over."""
ALL_HERE = "all are here"
"""Key in the team's store by which the first process says that nobody has to be waited for any more."""
TOKEN = "invitation"
"""Key in the team's store of the token that its invitation has: another stage may answer at the address of one that is
gone."""
CONNECT_S = 5.0
GATHERING_POLL_S = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Invitation:
    """What a stage that waits for other machines says of itself."""

    folder: Path
    """The stage's working folder, which names it."""
    engine: EngineParams
    torch: str = field(default_factory=lambda: version("torch"))
    token: str = field(default_factory=lambda: secrets.token_hex(8))

    @classmethod
    def read(cls) -> "Invitation | None":
        """The one that is there, if any."""
        try:
            values = json.loads(INVITATION.read_text())
            values |= {"folder": Path(values["folder"]), "engine": EngineParams(**values["engine"])}
            return cls(**values)
        except (OSError, ValueError, LookupError, TypeError):  # none, or one of another version of the project
            return None

    @contextmanager
    def posted(self) -> Iterator[None]:
        """There for other machines to see, if there are to be any.

        Before there is somebody who answers: what others read then is not what a stage left that was killed before.
        """
        if self.engine.nodes == 1:
            yield
            return
        engine: dict[str, Any] = asdict(self.engine)  # type: ignore[call-overload]
        FOLDER.mkdir(parents=True, exist_ok=True)
        new = INVITATION.with_suffix(".new")
        values = {"folder": str(self.folder), "engine": engine, "torch": self.torch, "token": self.token}
        new.write_text(json.dumps(values))
        new.replace(INVITATION)
        try:
            yield
        finally:
            INVITATION.unlink(missing_ok=True)

    def require_fit(self, node: int) -> None:
        """Refuse what could only end in a stage that waits for its time to be over.

        Raises:
            MachineError: if this machine has no place there, or another PyTorch.
        """
        if node >= self.engine.nodes:
            raise MachineError(
                f"{self.folder} trains on {self.engine.nodes} machines, so it has no node {node}: change engine.nodes "
                f"in params.yaml, or leave this machine out"
            )
        if self.torch != (ours := version("torch")):
            raise MachineError(
                f"{self.folder} trains with PyTorch {self.torch}, and this machine has {ours}: install the same here"
            )


def why_unreachable(address: str) -> str | None:
    """What keeps this machine from the address; None if somebody answers there.

    Asked from Python, which hears signals meanwhile; torch's store waits deaf to them.
    """
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_S).close()
    except OSError as error:
        return error.strerror or str(error)
    return None
