"""A user's file: the class that is meant, what it needs from its folders, and the problem that is made of it."""

import ast
from pathlib import Path
from typing import Any

import pytest

from tasks.errors import ProblemError
from tasks.search.bundle import bundle
from tasks.search.survey import Survey, survey
from tasks.search.texts import problem_texts, with_prefix
from tasks.search.user_file import read_user_file
from tasks.variants.candidate import Candidate

ONE = """import torch
from torch import nn

class Part(nn.Module):
    def forward(self, x):
        return x + 1

class Whole(nn.Module):
    def __init__(self, size, *, bias=True):
        super().__init__()
        self.part = Part()
        self.linear = nn.Linear(size, size, bias)

    def forward(self, x):
        return self.linear(self.part(x))

class Error(Exception):
    pass

def example_inputs():
    return torch.rand(2, 4)

def example_init():
    return [4]
"""


def file_of(folder: Path, source: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    return path


@pytest.mark.parametrize(
    ("source", "asked", "found"),
    [
        pytest.param(ONE, None, "Whole", id="the one that no other uses"),
        pytest.param(ONE, "Part", "Part", id="asked for"),
        pytest.param(ONE.replace("Part", "Model"), None, "Model", id="Model where there is one"),
        pytest.param(ONE.replace("nn.Module", "Base"), None, "Whole", id="by its forward"),
    ],
)
def test_the_class_that_is_meant(tmp_path: Path, source: str, asked: str | None, found: str) -> None:
    assert read_user_file(file_of(tmp_path, source), asked).class_name == found


@pytest.mark.parametrize(
    ("source", "asked", "words"),
    [
        pytest.param("x = 1\n", None, "no class with a forward", id="no module"),
        pytest.param("def\n", None, "does not parse", id="not Python"),
        pytest.param(f"{ONE}\nnonlocal x\n", None, "does not parse", id="not Python but in its grammar"),
        pytest.param(ONE, "Hole", "defines no module Hole; it has: Part, Whole", id="misspelt"),
        pytest.param(ONE, "Error", "defines no module Error", id="no module of this name"),
        pytest.param(ONE.replace("Part()", "None"), None, "several modules: Part, Whole; say which", id="several"),
        pytest.param(ONE.replace("example_inputs", "inputs"), None, "def example_inputs", id="no inputs"),
        pytest.param(ONE.replace("example_init", "init"), None, "needs the arguments size; add", id="no arguments"),
    ],
)
def test_what_is_missing_is_said_with_the_remedy(tmp_path: Path, source: str, asked: str | None, words: str) -> None:
    with pytest.raises(ProblemError, match=words):
        read_user_file(file_of(tmp_path, source), asked)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="cannot be read"):
        read_user_file(tmp_path / "none.py")


@pytest.mark.parametrize(
    ("cookie", "found"),
    [
        pytest.param("# -*- coding: latin-1 -*-", "# -*- coding: utf-8 -*-", id="for Emacs"),
        pytest.param("# coding: latin-1-unix", "# coding: utf-8", id="with line ends"),
        pytest.param("# vim: set fileencoding=latin-1 :", "# vim: set fileencoding=utf-8 :", id="for Vim"),
        pytest.param("#!/usr/bin/env python\n# coding=cp1252", "#!/usr/bin/env python\n# coding=utf-8", id="below"),
        pytest.param("x = 1\n# coding: latin-1", "x = 1\n# coding: latin-1", id="none, since a statement is before"),
        pytest.param("\n\n# coding: latin-1", "\n\n# coding: latin-1", id="none, since it is in the third line"),
    ],
)
def test_a_text_says_of_itself_that_it_is_utf_8(tmp_path: Path, cookie: str, found: str) -> None:
    is_one = cookie != found
    path = tmp_path / "mine.py"
    path.write_text(f"{cookie}\nWORD = 'é'\n{ONE}", encoding="latin-1" if is_one else "utf-8")
    source = read_user_file(path).source
    assert source == f"{found}\nWORD = 'é'\n{ONE}"
    scope: dict[str, object] = {}
    exec(compile(source.encode(), "there", "exec"), scope)
    assert scope["WORD"] == "é"


def test_what_a_file_imports_and_names_goes_with_it(tmp_path: Path) -> None:
    file_of(tmp_path, "", "pack/__init__.py")
    file_of(tmp_path, "from .deep import helper\nimport pack.other\n", "pack/near.py")
    file_of(tmp_path, "", "pack/deep/__init__.py")
    file_of(tmp_path, "", "pack/deep/helper.py")
    file_of(tmp_path, "", "pack/other.py")
    file_of(tmp_path, "", "pack/unused.py")
    file_of(tmp_path, "[]", "pack/data/table.json")
    file_of(tmp_path, "{}", "pack/settings.json")
    source = "from .near import x\nPATHS = 'data', 'settings.json', '/etc/passwd', '../secret', 'nothing.json'\n" + ONE
    path = file_of(tmp_path, source, "pack/mine.py")
    file_of(tmp_path, "", "secret")
    unpacked = _unpacked(bundle(read_user_file(path)), tmp_path / "there")
    assert unpacked == {
        f"pack/{name}"
        for name in (
            "__init__.py",
            "near.py",
            "deep/__init__.py",
            "deep/helper.py",
            "other.py",
            "data/table.json",
            "settings.json",
        )
    }


def _unpacked(prefix: str, folder: Path) -> set[str]:
    """The files that the prefix lays out, without running it here."""
    import base64
    import json
    import zlib

    unpack = ast.parse(prefix).body[0]
    assert isinstance(unpack, ast.FunctionDef)
    packed = ast.literal_eval(unpack.args.defaults[0])
    return set(json.loads(zlib.decompress(base64.b85decode(packed))))


def test_a_file_that_needs_nothing_gets_nothing(tmp_path: Path) -> None:
    assert bundle(read_user_file(file_of(tmp_path, ONE))) == ""


def test_too_much_data_is_refused_with_its_names(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(b"\0" * (9 << 20))
    path = file_of(tmp_path, ONE.replace("return x + 1", "return x + len('weights.bin')"))
    with pytest.raises(ProblemError, match=r"uses weights\.bin: more than 512 KiB"):
        bundle(read_user_file(path))


def test_a_prefix_stands_after_what_must_come_first() -> None:
    text = with_prefix('"""Doc."""\nfrom __future__ import annotations\nimport torch\n', "\nx = 1\n")
    ast.parse(text)
    compile(text, "text", "exec")
    assert text.index("__future__") < text.index("x = 1") < text.index("import torch")


def test_the_class_is_judged_as_model_in_evaluation_mode(tmp_path: Path) -> None:
    file = read_user_file(file_of(tmp_path, ONE + "\n\nclass Model:\n    pass\n"), "Whole")
    texts = problem_texts(file, survey(file))
    for source in (texts.judged.source, texts.shown.source):
        assert "class Model(nn.Module)" in source
        assert "class OtherModel" in source
        assert "self.eval()" in source
    assert "torch.randn(2, 4)" in texts.shown.source
    assert "return [4]" in texts.shown.source
    assert "torch.rand(2, 4)" in texts.judged.source


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("class Whole(Part): pass\n", id="a class"),
        pytest.param(
            "class Whole(Part):\n    def __init__(self): super().__init__(); self.x = 1\n", id="a constructor"
        ),
    ],
)
def test_what_is_written_in_one_line_is_judged_in_evaluation_mode_too(tmp_path: Path, text: str) -> None:
    source = f"{ONE.partition('class Whole')[0]}{text}\n\ndef example_inputs():\n    return torch.rand(2, 4)\n"
    file = read_user_file(file_of(tmp_path, source), "Whole")
    names: dict[str, Any] = {}
    exec(problem_texts(file, survey(file)).judged.source, names)
    assert not names["Model"]().training


def test_a_kernelbench_file_is_a_problem_as_it_stands(tmp_path: Path) -> None:
    source = ONE.replace("Whole", "Model").replace("example_inputs", "get_inputs").replace("_init()", "()")
    source = source.replace("def example()", "def get_init_inputs()").replace("torch.rand(2, 4)", "[torch.rand(2, 4)]")
    file = read_user_file(file_of(tmp_path, source))
    assert file.is_kernelbench
    texts = problem_texts(file, survey(file))
    assert texts.judged.source == texts.shown.source == source


def test_a_candidate_is_judged_with_the_files_it_may_read(tmp_path: Path) -> None:
    file_of(tmp_path, "x = 1\n", "near.py")
    file = read_user_file(file_of(tmp_path, "import near\n" + ONE))
    texts = problem_texts(file, Survey(inputs=(), named_inputs={}, constructor=None))
    candidate = Candidate(problem_id="mine", source="class ModelNew: ...\n", origin="test", recipe=("step",))
    judged = texts.as_judged(candidate)
    assert judged.source == texts.prefix + candidate.source
    assert judged.recipe == ("step",)
    assert texts.judged.source.startswith(texts.prefix)


def test_a_file_that_hangs_is_given_up(tmp_path: Path) -> None:
    path = file_of(tmp_path, ONE.replace("return x + 1", "import time; time.sleep(60)"))
    with pytest.raises(ProblemError, match="longer than 5 s"):
        survey(read_user_file(path), timeout_s=5.0)


def test_forms_of_all_kinds(tmp_path: Path) -> None:
    call = "{'x': [torch.rand(2), 1], 'y': 'sum', 'z': float(torch.rand(()))}"
    path = file_of(
        tmp_path,
        ONE.replace("torch.rand(2, 4)", call).replace(
            "def forward(self, x):\n        return self.linear(self.part(x))",
            "def forward(self, x, y, z):\n        return self.part(x[0]) * z",
        ),
    )
    facts = survey(read_user_file(path))
    assert facts.inputs == ()
    assert facts.named_inputs == {
        "x": [("tensor", "float32", (2,), (1,)), ("value", 1)],
        "y": ("value", "sum"),
        "z": ("type", "float"),
    }
