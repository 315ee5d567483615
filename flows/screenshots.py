"""The pictures of docs/, taken of a report by a headless Chromium.

    python -m flows.screenshots data/evaluate/report.html --out docs

Makes report.png, report-dark.png, report-kernel.png and report-phone.png.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tasks.errors import CudaL1Error, MachineError, RecordError
from tasks.report.payload import unpacked

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DRAWING_MS = 20_000  # of the browser's own time, which runs ahead while it waits for nothing
TIMEOUT_S = 120.0
PHONE = (
    '<!DOCTYPE html><body style="margin:0;background:#8a94a3">'
    '<iframe src="{page}" style="display:block;width:390px;height:844px;margin:28px auto;border:0;border-radius:24px">'
    "</iframe></body>"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Shot:
    """One picture: what of the report, and how."""

    name: str
    width: int
    height: int
    theme: str = "light"
    anchor: str = ""
    is_phone: bool = False


def take(report: Path, shots: Sequence[Shot], out: Path) -> list[Path]:
    """One picture for each shot.

    Raises:
        MachineError: if there is no browser, or it does not take the picture.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise MachineError(f"pictures need a browser, one of {', '.join(BROWSERS)}; install chromium")
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        return [_take(browser, report, shot, out / f"{shot.name}.png", Path(folder)) for shot in shots]


def shots_of(report: Path) -> list[Shot]:
    """The pictures of docs/; the kernel is the first of the leaderboard."""
    pages = unpacked(report.read_text(), "data")["pages"]
    if not pages:
        raise RecordError(f"{report} shows no kernel to take a picture of")
    return [
        Shot(name="report", width=1280, height=1440),
        Shot(name="report-dark", width=1280, height=1440, theme="dark"),
        Shot(name="report-kernel", width=1280, height=1180, anchor=f"kernel-{pages[0]}"),
        Shot(name="report-phone", width=500, height=900, is_phone=True),
    ]


def _take(browser: str, report: Path, shot: Shot, picture: Path, folder: Path) -> Path:
    page = folder / f"{shot.name}.html"
    page.write_text(report.read_text().replace('data-theme="auto"', f'data-theme="{shot.theme}"', 1))
    address = f"{page.as_uri()}#{shot.anchor}"
    if shot.is_phone:  # a window cannot be as narrow as a phone
        frame = folder / f"{shot.name}-frame.html"
        frame.write_text(PHONE.format(page=address))
        address = frame.as_uri()
    flags = [
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={shot.width},{shot.height}",
        f"--virtual-time-budget={DRAWING_MS}",
        f"--screenshot={picture.absolute()}",
    ]
    picture.unlink(missing_ok=True)
    try:
        subprocess.run([browser, *flags, address], capture_output=True, timeout=TIMEOUT_S, check=True)
    except (subprocess.SubprocessError, OSError) as error:
        raise MachineError(f"{browser} took no picture of {report}: {error}") from None
    if not picture.exists():
        raise MachineError(f"{browser} said nothing and took no picture of {report}")
    return picture


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Take the pictures of docs/ of a report.")
    parser.add_argument("report", type=Path, help="such as data/evaluate/report.html")
    parser.add_argument("--out", type=Path, default=Path("docs"), metavar="FOLDER", help="where to put them (docs)")
    parsed = parser.parse_args(arguments)
    if not parsed.report.is_file():
        sys.stderr.write(f"there is no file {parsed.report}; `cuda-l1 report --history FILE --out REPORT` writes one\n")
        return 1
    try:
        pictures = take(parsed.report, shots_of(parsed.report), parsed.out)
    except (CudaL1Error, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write("".join(f"{picture}\n" for picture in pictures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
