"""Files that go with a program behind the walls: laid out again, they let it run as it does in its own folders."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.search.bundle import bundle
from tasks.search.texts import with_prefix
from tasks.search.user_file import read_user_file

HELPER = "def shifted(x):\n    return x + 1\n"
BLOCK = """

class Block:
    def forward(self, x):
        return helper.shifted(x)


def example_inputs():
    return [1]
"""
CALL = "print(Block().forward(1))\n"
SUBFOLDER = {
    "pack/__init__.py": "",
    "pack/helper.py": HELPER,
    "pack/models/__init__.py": "",
    "pack/models/block.py": f"from .. import helper\n{BLOCK}",
}
PACKAGE = {"pack/__init__.py": "", "pack/helper.py": HELPER, "pack/block.py": f"from . import helper\n{BLOCK}"}
BESIDE = {"helper.py": f"import block\n\n\n{HELPER}", "block.py": f"import helper\n{BLOCK}"}


def laid_out(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What comes of a program in a folder that has nothing else."""
    folder.mkdir()
    (folder / "program.py").write_text(program)
    command = [sys.executable, "program.py"]
    return subprocess.run(command, cwd=folder, env={"TMPDIR": str(folder)}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("files", "name"),
    [
        pytest.param(SUBFOLDER, "pack/models/block.py", id="from a folder of which no other file is needed"),
        pytest.param(
            PACKAGE | {"pack/__init__.py": "from .block import Block\n"},
            "pack/block.py",
            id="from a package that imports the file itself",
        ),
        pytest.param(BESIDE, "block.py", id="beside a module that imports the file itself"),
    ],
)
def test_a_program_runs_as_in_its_own_folders(tmp_path: Path, files: dict[str, str], name: str) -> None:
    file = read_user_file(laid_out(tmp_path / "own", files) / name)
    done = run(with_prefix(file.source + CALL, bundle(file)), tmp_path / "elsewhere")
    assert (done.stdout, done.stderr) == ("2\n", "")


def test_the_file_itself_goes_along_only_where_something_imports_it(tmp_path: Path) -> None:
    run(bundle(read_user_file(laid_out(tmp_path / "own", PACKAGE) / "pack/block.py")), tmp_path / "elsewhere")
    assert {each.name for each in (tmp_path / "elsewhere").rglob("*.py")} == {"program.py", "__init__.py", "helper.py"}


def test_an_error_while_files_are_laid_out_is_told_without_what_is_in_them(tmp_path: Path) -> None:
    prefix = bundle(read_user_file(laid_out(tmp_path / "own", PACKAGE) / "pack/block.py"))
    done = run(prefix.replace("chdir(folder)", "chdir(folder + '2')"), tmp_path / "elsewhere")
    assert "No such file" in done.stderr
    assert max(re.findall("'([^']*)'", prefix), key=len) not in done.stderr
