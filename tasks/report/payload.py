"""The page's data as its scripts read it: columns of codes, sources as tokens; compressed, since it is much.

Nothing here is HTML: scripts write every text with textContent, so no name and no source can become markup.
"""

import base64
import gzip
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tasks.errors import RecordError
from tasks.judge.verdict import Status, Track
from tasks.problems.problem import Split
from tasks.report.exploration import Exploration

if TYPE_CHECKING:
    import polars

    from tasks.report.plots import Curves

DIGITS = 6
"""Significant ones of every number; more than any timing means, few enough for 100,000 of them."""

CODED = ("device", "protocol", "stage", "split", "level", "track", "origin", "baseline", "status", "problem")
"""Columns of few distinct values, stored as places in a list of names; -1 for none."""

_ORDERS: dict[str, Sequence[str]] = {
    "split": [split.value for split in Split],
    "track": [*(track.value for track in Track), "unknown"],
    "status": [status.value for status in reversed(Status)],
}
_FIRST_SEEN = ("stage", "origin")
CURVE_VALUES = ("share_correct", "geomean_speedup", "distinct_share")


def packed(content: object) -> str:
    """JSON, compressed, in letters that HTML leaves alone. Equal contents give equal texts."""
    text = content if isinstance(content, str) else json.dumps(content, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), mtime=0)).decode()


def unpacked(page: str, name: str) -> Any:
    """What was packed into the script element of that name: for programs that read a finished page.

    Raises:
        RecordError: if the page has no such element.
    """
    found = re.search(rf'<script type="text/plain" id="{name}">([^<]*)</script>', page)
    if found is None:
        raise RecordError(f"the page holds no {name!r}; was it made by this version?")
    return json.loads(gzip.decompress(base64.b64decode(found.group(1))))


def explored(exploration: Exploration, *, curves: "Curves | None") -> dict[str, Any]:
    """All that is filtered: verdicts, champions, baselines, hacks and curves, with one list of names for each column.

    Args:
        curves: what the stages recorded while they learnt; None takes what each step's samples came to.
    """
    frames = {
        "verdicts": exploration.verdicts,
        "champions": exploration.champions,
        "baselines": exploration.baselines,
        "hacks": exploration.hacks,
    }
    labelled = {name: _labelled(frame) for name, frame in frames.items()}
    names = {column: _names(column, labelled.values()) for column in CODED}
    tables = {name: _columns(frame, names) for name, frame in labelled.items()}
    del tables["verdicts"]["candidate_id"], tables["verdicts"]["verdict_id"], tables["hacks"]["verdict_id"]
    recorded = _sampled_curves(exploration.curves) if curves is None else _recorded_curves(curves)
    return {"names": names, **tables, "curves": recorded, "pages": list(exploration.pages.kernels)}


def kernel_texts(exploration: Exploration) -> dict[str, Any]:
    """The pages of single kernels, with every source as tokens."""
    pages = exploration.pages
    return {
        "kernels": {name: _plain(row) for name, row in pages.kernels.items()},
        "references": {name: _plain(row) for name, row in pages.references.items()},
    }


def tokens(source: str) -> list[str]:
    """The source cut for highlighting: class, text, class, text ... in pygments' short names of kinds of tokens.

    White space, which has no colour, goes with what it follows.

    >>> tokens("x = 1")
    ['n', 'x ', 'o', '= ', 'mi', '1\\n']
    """
    from pygments.lexers import PythonLexer
    from pygments.token import STANDARD_TYPES

    cut: list[str] = []
    for kind, text in PythonLexer().get_tokens(source):
        name = STANDARD_TYPES.get(kind, "")
        if cut and (cut[-2] == name or not text.strip()):
            cut[-1] += text
        else:
            cut += [name, text]
    return cut


def _labelled(frame: "polars.DataFrame") -> "polars.DataFrame":
    """With "problem": the id, and its text's hash where a problem had several texts."""
    import polars

    texts = polars.col("problem_hash").n_unique().over("problem_id")
    label = polars.concat_str("problem_id", polars.lit(" #"), polars.col("problem_hash").str.slice(0, 6))
    problem = polars.when(texts > 1).then(label).otherwise(polars.col("problem_id")).alias("problem")
    return frame.with_columns(problem).drop("problem_id", "problem_hash")


def _names(column: str, frames: "Iterable[polars.DataFrame]") -> list[Any]:
    """The distinct values of a column of several frames, in the order in which people expect them."""
    import polars

    held = [frame[column].drop_nulls() for frame in frames if column in frame.columns]
    seen = polars.concat([series for series in held if len(series)] or held[:1]).unique(maintain_order=True).to_list()
    if column in _ORDERS:
        return [name for name in _ORDERS[column] if name in seen]
    return seen if column in _FIRST_SEEN else sorted(seen)


def _columns(frame: "polars.DataFrame", names: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    import polars

    columns: dict[str, list[Any]] = {}
    for series in frame:
        if series.name in names:
            codes = {name: code for code, name in enumerate(names[series.name])}
            series = series.replace_strict(codes, default=-1, return_dtype=polars.Int32())
        elif series.dtype.is_float():
            series = series.round_sig_figs(DIGITS)
        columns[series.name] = series.to_list()
    return columns


def _sampled_curves(frame: "polars.DataFrame") -> list[dict[str, Any]]:
    """One curve for each value of each run, split, device and protocol that has at least two steps."""
    found = []
    for (stage, run, split, device, protocol), rows in frame.group_by(
        ["stage", "run_id", "split", "device", "protocol"], maintain_order=True
    ):
        for value in CURVE_VALUES if len(rows) > 1 else ():
            of = {"stage": stage, "series": f"{run}, {split}", "split": split, "device": device, "protocol": protocol}
            known = rows.filter(rows[value].is_not_null())
            found.append(of | {"value": value, "x": known["step"].to_list(), "y": _short(known[value])})
    return found


def _recorded_curves(curves: "Curves") -> list[dict[str, Any]]:
    found = []
    for stage, rows in curves.items():
        for value in dict.fromkeys(name for row in rows for name in row if name != "step"):
            given = [row for row in rows if value in row]
            x, y = [row["step"] for row in given], [float(f"{row[value]:.{DIGITS}g}") for row in given]
            found.append({"stage": stage, "series": stage, "value": value, "x": x, "y": y})
    return found


def _short(series: "polars.Series") -> list[float]:
    return series.round_sig_figs(DIGITS).to_list()


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a kernel's page as JSON can hold it."""
    plain: dict[str, Any] = {}
    for name, value in row.items():
        if name == "source":
            plain[name] = tokens(value)
        elif name == "environment":
            plain[name] = json.loads(value)
        elif name == "judged_at":
            plain[name] = value.isoformat(sep=" ", timespec="minutes")
        elif name == "verdicts":
            plain[name] = [_plain(verdict) for verdict in value]
        elif name.endswith("_ms") or isinstance(value, float):
            plain[name] = _rounded(value)
        else:
            plain[name] = value
    return plain


def _rounded(value: Any) -> Any:
    return [_rounded(item) for item in value] if isinstance(value, list) else float(f"{value:.{DIGITS}g}")
