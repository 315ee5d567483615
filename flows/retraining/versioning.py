"""The state a champion was made from, kept: a tag in git, and the stages' outputs at DVC's remote."""

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from flows.ancestors import end_with_parent
from tasks.errors import MachineError, RetryableError
from tasks.params import Params, as_document
from tasks.registry import PolicyVersion

GIT_LIMIT_S = 60.0
PUSH_LIMIT_S = 4 * 3600.0
TAGS = "retrain"
AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "cuda-l1 retrain"), ("EMAIL", "retrain@localhost"))
}
STATE = ("dvc.yaml", "dvc.lock", "params.yaml", "data")
"""What a retraining changes, besides files that git knows already."""


class PushError(RetryableError):
    """DVC's remote did not take what it was given."""


def provenance(params: Params) -> dict[str, str]:
    """What a policy was made from, as tags for the registry."""
    document = json.dumps(as_document(params), sort_keys=True)
    facts = {"params_sha256": hashlib.sha256(document.encode()).hexdigest(), "dvc_lock_sha256": dvc_lock_digest()}
    if commit := git_commit():
        facts["git_commit"] = commit
    return {f"cuda_l1.{name}": value for name, value in facts.items()}


def dvc_lock_digest() -> str:
    """Content hash of dvc.lock, which names every input and output of every stage; empty where there is none."""
    lock = Path("dvc.lock")
    return hashlib.sha256(lock.read_bytes()).hexdigest() if lock.exists() else ""


def git_commit() -> str | None:
    """The commit that is checked out, or None outside of a repository, or in one without any."""
    try:
        return _git("rev-parse", "--verify", "HEAD")
    except MachineError:
        return None


def tag_champion(policy: PolicyVersion, reason: str) -> str | None:
    """An annotated tag on a commit of the files as they are, DVC's among them; returns its name.

    None without git, and in a workspace that lies within another repository, which ignores it or is not its own.

    The commit is a child of the one that is checked out and on no branch: neither the index nor the branch nor any file
    is touched, so people may be at work in the same folder. A version that has its tag keeps it.

    Raises:
        MachineError: if git fails.
    """
    if git_commit() is None or not _is_own_repository():
        return None
    day = time.strftime("%Y-%m-%d", time.gmtime(policy.created_at))
    name = f"{TAGS}/{day}-champion-{policy.version}"
    if _git("tag", "--list", name):
        if policy.digest in _git("tag", "--list", "--format=%(contents)", name):
            return name
        name = f"{name}-{policy.digest[:8]}"  # of another registry, which counts from 1 as well
        if _git("tag", "--list", name):
            return name
    message = f"Champion {policy.version}: policy {policy.digest}\n\n{reason}"
    with TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        _git("read-tree", "HEAD", environment=index)
        _git("add", "--update", environment=index)
        _git("add", "--", *(path for path in STATE if Path(path).exists()), environment=index)
        tree = _git("write-tree", environment=index)
    commit = _git("commit-tree", tree, "-p", "HEAD", "-m", message, environment=AUTHOR)
    _git("tag", "--annotate", "--no-sign", "--message", message, name, commit, environment=AUTHOR)
    return name


def push_outputs() -> bool:
    """Send what the stages made to DVC's default remote; False where none is configured.

    Raises:
        PushError: if the remote does not take it. What it has stays there: the next push sends the rest.
    """
    remote = _run([sys.executable, "-m", "dvc", "config", "core.remote"], GIT_LIMIT_S)
    if remote.returncode or not remote.stdout.strip():
        return False
    try:
        pushed = _run([sys.executable, "-m", "dvc", "push"], PUSH_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise PushError(f"dvc push to {remote.stdout.strip()} was not done after {PUSH_LIMIT_S:.0f} s") from None
    if pushed.returncode:
        raise PushError(f"dvc push to {remote.stdout.strip()} failed: {pushed.stderr.strip()[-500:]}")
    return True


def _is_own_repository() -> bool:
    ignored = _run(["git", "check-ignore", "--quiet", "dvc.yaml"], GIT_LIMIT_S).returncode == 0
    return not ignored and Path(_git("rev-parse", "--show-toplevel")).resolve() == Path.cwd().resolve()


def _git(*arguments: str, environment: dict[str, str] | None = None) -> str:
    try:
        done = _run(["git", *arguments], GIT_LIMIT_S, environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MachineError(f"git {arguments[0]} cannot be run: {error}") from error
    if done.returncode:
        raise MachineError(f"git {' '.join(arguments)} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def _run(
    command: list[str], limit_s: float, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
        stdin=subprocess.DEVNULL,
        preexec_fn=end_with_parent,
    )
