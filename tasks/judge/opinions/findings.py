"""What a candidate's text suggests about its intent: a second opinion that never changes a verdict.

Text says nothing reliable: a hostile program can hide every word looked for here, and honest ones use most of them. So
findings are for people, for the reward checker's prompt and for statistics; the judge decides by what it observes.
"""

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from tasks.judge.opinions import finding_rules as rules
from tasks.judge.opinions.finding_rules import (
    RULES_BY_ATTRIBUTE,
    RULES_BY_BASE,
    RULES_BY_METHOD,
    RULES_BY_TEXT,
    Rule,
    Tier,
    rule_of,
)
from tasks.judge.opinions.native_text import looks_native, native_findings
from tasks.judge.opinions.python_names import Names, folded, parts
from tasks.problems.parsing import parsed

_SEVERITY = {tier: place for place, tier in enumerate(reversed(Tier))}
_CODE_ATTRIBUTES = ("__class__", "__code__", "__dict__", "__bases__", "__defaults__", "__closure__", "__mro__")
_LIBRARY_SETTINGS = ("backends", "config", "_dynamo", "_inductor")
_MAX_NESTED_TEXTS = 8

Met = Iterator[tuple[Rule, str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One rule that the text meets on one line."""

    name: str
    tier: Tier
    line: int
    """From 1, of the Python text."""
    words: str
    """A sentence with the word that was found."""


def static_findings(source: str) -> tuple[Finding, ...]:
    """What stands out in a candidate's text, the most severe first; each rule once a line. Never raises."""
    tree = _parsed(source)
    if tree is None:
        rule = rules.UNREADABLE
        return (Finding(name=rule.name, tier=rule.tier, line=1, words=f"the candidate {rule.words}"),)
    found: dict[tuple[str, int], Finding] = {}
    for rule, line, word in _met_in(tree, nested=0):
        words = f"the candidate {rule.words}: {_short(word)}"
        found.setdefault((rule.name, line), Finding(name=rule.name, tier=rule.tier, line=line, words=words))
    return tuple(sorted(found.values(), key=lambda finding: (_SEVERITY[finding.tier], finding.line, finding.name)))


def worst_tier(findings: tuple[Finding, ...]) -> Tier | None:
    """The most severe tier among findings; None when there are none."""
    return min((finding.tier for finding in findings), key=_SEVERITY.__getitem__, default=None)


def _parsed(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return parsed(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _met_in(tree: ast.Module, *, nested: int) -> Iterator[tuple[Rule, int, str]]:
    names = Names(tree)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 1)
        for rule, word in _met_by(node, names):
            yield rule, line, word
        if isinstance(node, ast.Call) and names.dotted(node.func) in ("exec", "eval", "compile") and node.args:
            yield from _met_in_run_text(node, nested=nested)
    for node, text in _texts(tree):
        yield from _met_in_text(node, text)


def _met_by(node: ast.AST, names: Names) -> Met:
    match node:
        case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
            yield from _met_by_reference(node, names)
        case ast.Try():
            yield rules.CATCHES, "try"
        case ast.ClassDef():
            yield from _met_by_class(node, names)
        case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Delete():
            yield from _met_by_change(node, names)
        case ast.Call():
            yield from _met_by_call(node, names)
        case ast.While(test=ast.Constant(value=value)) if value:
            if any(isinstance(inner, ast.Call) and names.dotted(inner.func) == "os.fork" for inner in ast.walk(node)):
                yield rules.FORK_BOMB, "while ...: os.fork()"


def _met_by_reference(node: ast.expr, names: Names) -> Met:
    dotted = names.dotted(node)
    rule = rule_of(dotted) if names.is_known(dotted) else None
    if rule:
        yield rule, dotted
    if not isinstance(node, ast.Attribute):
        return
    if node.attr in RULES_BY_ATTRIBUTE:
        yield RULES_BY_ATTRIBUTE[node.attr], f".{node.attr}"
    if node.attr == "__file__" and names.is_imported(node.value):
        yield rules.INSTALLATION, dotted
    if dotted == "self.training":
        yield rules.TRAINING, dotted


def _met_by_class(node: ast.ClassDef, names: Names) -> Met:
    for base in node.bases:
        dotted = names.dotted(base)
        if dotted in RULES_BY_BASE:
            yield RULES_BY_BASE[dotted], dotted
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and member.name in RULES_BY_METHOD:
            yield RULES_BY_METHOD[member.name], member.name


def _met_by_change(node: ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete, names: Names) -> Met:
    targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
    for target in targets:
        for each in parts(target):
            yield from _met_by_target(each, names)
    if isinstance(node, ast.AugAssign) and names.dotted(node.target).startswith("self."):
        yield rules.COUNTER, names.dotted(node.target)


def _met_by_target(target: ast.expr, names: Names) -> Met:
    """What changing an attribute or an entry amounts to; changing a variable is nobody's business."""
    if isinstance(target, ast.Name):
        return
    dotted = names.dotted(target)
    steps = dotted.split(".")
    if isinstance(target, ast.Attribute) and target.attr in _CODE_ATTRIBUTES:
        yield rules.CLASS_ASSIGNMENT, dotted or f".{target.attr}"
    elif "__class__" in steps or "type()" in steps:
        yield rules.CLASS_ASSIGNMENT, dotted
    elif "cache" in steps[-1].lower():
        yield rules.CACHE, dotted
    elif not names.is_imported(target):
        return
    elif steps[0] == "os" and steps[-1] == "environ":
        yield rules.SETTING, dotted
    elif any(step in _LIBRARY_SETTINGS for step in steps):
        yield (rules.PRECISION if "allow_tf32" in steps else rules.SETTING), dotted
    else:
        yield rules.PATCH, dotted


def _met_by_call(node: ast.Call, names: Names) -> Met:
    called, arguments = names.dotted(node.func), node.args
    if isinstance(node.func, ast.Call | ast.Subscript):
        yield from _met_by_reference(node.func, names)
    if called in ("setattr", "delattr") and arguments:
        owner = names.dotted(arguments[0])
        if names.is_imported(arguments[0]):
            yield rules.PATCH, f"{called}({owner})"
        elif "type()" in owner or "__class__" in owner:
            yield rules.CLASS_ASSIGNMENT, f"{called}({owner})"
    elif called in ("getattr", "__import__", "importlib.import_module"):
        name = arguments[min(called == "getattr", len(arguments) - 1)] if arguments else None
        if name is not None and not isinstance(name, ast.Constant):
            # A name put together from constants is put together to be hidden.
            yield (rules.DYNAMIC_NAME if folded(name) is None else rules.HIDDEN_TEXT), called
    elif called in ("os.kill", "os.killpg") and arguments and _is_aimed_up(arguments[0], names):
        yield rules.KILL, called


def _is_aimed_up(target: ast.expr, names: Names) -> bool:
    """Whether a process id is the parent's, or stands for every process."""
    if isinstance(target, ast.UnaryOp) and isinstance(target.op, ast.USub):
        return True
    return any(isinstance(node, ast.expr) and names.dotted(node).startswith("os.getppid") for node in ast.walk(target))


def _met_in_run_text(node: ast.Call, *, nested: int) -> Iterator[tuple[Rule, int, str]]:
    """A literal that is run is read like the rest of the program; anything else cannot be."""
    text = folded(node.args[0])
    tree = _parsed(text) if text is not None and not isinstance(node.args[0], ast.JoinedStr) else None
    if tree is None or nested >= _MAX_NESTED_TEXTS:
        yield rules.HIDDEN_TEXT, node.lineno, "exec"
        return
    yield rules.RUNS_TEXT, node.lineno, "exec"
    for rule, _, word in _met_in(tree, nested=nested + 1):
        yield rule, node.lineno, word


def _texts(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """Every string of the program but docstrings, those put together from constants as a whole."""
    done: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            done.add(id(node.value))
        elif isinstance(node, ast.expr) and id(node) not in done:
            text = folded(node)
            if text is not None:
                done.update(map(id, ast.walk(node)))
                yield node, text


def _met_in_text(node: ast.expr, text: str) -> Iterator[tuple[Rule, int, str]]:
    if looks_native(text):
        last = node.end_lineno or node.lineno
        for rule, line, word in native_findings(text):
            yield rule, min(node.lineno + line - 1, last), word
        return
    for pattern, rule in RULES_BY_TEXT:
        if pattern.search(text):
            yield rule, node.lineno, repr(text)


def _short(word: str) -> str:
    return word if len(word) <= 80 else f"{word[:77]}..."
