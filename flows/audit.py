"""`make audit`: known vulnerabilities of the packages that constraints.txt pins, as pip-audit finds them.

pip-audit calls a package without news where its index is a mirror that serves no advisories, and so nothing is ever
found. Here that is a failure: every package must have been looked up, and a canary, which is known to be vulnerable,
must be reported as such.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tasks.errors import MachineError

CANARY, CANARY_VERSION = "django", "1.2"  # not among our packages, and never mended
SERVICE = ("--progress-spinner", "off", "--format", "json", "--no-deps", "--disable-pip")
TIMEOUT_S = 900.0
FOUND, CANNOT = 1, 3


def audit(requirements: Path, options: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The packages with known vulnerabilities, as pip-audit describes them.

    Args:
        requirements: a file that pins every package.
        options: for pip-audit, such as which service to ask.

    Raises:
        MachineError: if not every package could be looked up, for which most often the network is the reason.
    """
    with TemporaryDirectory() as folder:
        canary = Path(folder) / "canary.txt"
        canary.write_text(f"{CANARY}=={CANARY_VERSION}\n")
        if not any(found["vulns"] for found in _looked_up(canary, options)):
            raise MachineError(
                f"the advisories say nothing of {CANARY} {CANARY_VERSION}, which is known to be vulnerable: what "
                f"answers is no advisory service, and nothing was audited. Ask another with "
                f'AUDIT="--vulnerability-service osv --osv-url URL"'
            )
    return [package for package in _looked_up(requirements, options) if package["vulns"]]


def _looked_up(requirements: Path, options: Sequence[str]) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "pip_audit", *SERVICE, *options, "--requirement", str(requirements)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise MachineError(f"pip-audit did not end within {TIMEOUT_S:g} s; nothing was audited") from None
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        reason = done.stderr.strip().rpartition("\n")[2] or f"it ended with status {done.returncode}"
        raise MachineError(
            f"pip-audit could not ask for advisories, and nothing was audited: {reason}. PyPI's own "
            f'service must be reachable, or that of OSV with AUDIT="--vulnerability-service osv"'
        ) from None
    if skipped := [package["name"] for package in packages if "skip_reason" in package]:
        raise MachineError(
            f"{len(skipped)} of {len(packages)} packages could not be looked up, so this is no audit: "
            f"{', '.join(skipped[:5])}{' ...' if len(skipped) > 5 else ''}. Is PyPI itself reachable, and not a "
            f"mirror of its files only?"
        )
    return packages


def _lines(vulnerable: Sequence[dict[str, Any]]) -> str:
    return "".join(
        f"{package['name']} {package['version']}: {found['id']}, mended in {', '.join(found['fix_versions']) or '-'}\n"
        for package in vulnerable
        for found in package["vulns"]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit and say what was found.

    Returns:
        0 every package was looked up and none is known to be vulnerable, 1 some are, 3 they could not be looked up.
    """
    parser = argparse.ArgumentParser(description="Known vulnerabilities of the pinned packages.")
    parser.add_argument("--requirements", type=Path, default=Path("constraints.txt"), metavar="FILE")
    parsed, options = parser.parse_known_args(arguments)
    try:
        vulnerable = audit(parsed.requirements, options)
    except MachineError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return CANNOT
    if vulnerable:
        sys.stdout.write(_lines(vulnerable))
        return FOUND
    sys.stdout.write(f"no known vulnerability in what {parsed.requirements} pins\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
