"""Static findings in C, C++ and CUDA text that a candidate holds as strings, on tokens instead of lines.

Comments and literals are told apart as a compiler does: what stands behind // within a string is not a comment.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tasks.judge.opinions import finding_rules as rules
from tasks.judge.opinions.finding_rules import RULES_BY_TEXT, Rule

# Every alternative that can be left open ends at the end of its line or of the text instead of failing there: a hostile
# text must not make the search start over at each of its characters.
_TOKEN = re.compile(
    r"""
      (?P<comment> //(?:[^\n\\]|\\.)* | /\*.*?(?:\*/|\Z) )
    | (?P<raw>     (?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?(?:\)(?P=mark)"|\Z) )
    | (?P<text>    "(?:[^"\\\n]|\\.)*(?:"|\n|\\?\Z) )
    | (?P<char>    '(?:[^'\\\n]|\\.)*(?:'|\n|\\?\Z) )
    | (?P<name>    (?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)* )
    | (?P<number>  \d(?:'?[\w.])* )
    | (?P<paste>   \#\# )
    | (?P<other>   \S )
    """,
    re.VERBOSE | re.DOTALL,
)

# Functions, by the last part of a qualified name; only where they are called or declared.
_CALLS = {
    rules.PTRACE: "ptrace process_vm_readv process_vm_writev pidfd_getfd",
    rules.FORK: "fork vfork clone clone3 daemon setsid execve execl execlp execv execvp posix_spawn",
    rules.PROCESS: "system popen",
    rules.SIGNALS: "kill tgkill tkill killpg raise sigaction signal pthread_kill sigprocmask setitimer",
    rules.EXIT: "exit _exit _Exit quick_exit abort terminate",
    rules.EXIT_HANDLER: "atexit at_quick_exit",
    rules.PARENT: "getppid",
    rules.SYSTEM_CALL: "syscall prctl unshare setns seccomp mount personality",
    rules.MEMORY: "mprotect mremap pkey_mprotect",
    rules.SYMBOLS: "dlsym dlvsym dl_iterate_phdr dladdr",
    rules.NETWORK: "socket connect getaddrinfo",
    rules.DESCRIPTORS: "dup dup2 dup3 pwrite fdopen",
    rules.FRAMES: "PyEval_GetFrame PyThreadState_GetFrame PyFrame_GetBack PyEval_GetGlobals backtrace",
    rules.COLLECTOR: "PyGC_Collect PyUnstable_GC_VisitObjects PyObject_GC_IsTracked",
    rules.HIDDEN_TEXT: "PyRun_SimpleString PyRun_String Py_CompileString",
    rules.SCHEDULING: "sched_setaffinity pthread_setaffinity_np setpriority nice setrlimit",
}
_RULES_BY_CALL = {name: rule for rule, names in _CALLS.items() for name in names.split()}

# Names wherever they stand, qualified as written.
_NAMES = (
    (re.compile(r"(?:cuda|hip)Stream(?:Create|BeginCapture)\w*|cuStreamCreate\w*|.*getStreamFromPool"), rules.STREAM),
    (re.compile(r"pthread_create|std::(?:j?thread|async)"), rules.THREAD),
    (re.compile(r"clock_gettime|gettimeofday|clock64|__rdtsc|std::chrono.*|(?:cuda|hip)Event\w+"), rules.CLOCK),
    (re.compile(r"accessPolicyWindow|cudaLimitPersistingL2CacheSize|cudaAccessProperty\w*"), rules.STALE_MEMORY),
    (re.compile(r"asm|__asm__|__asm"), rules.ASSEMBLY),
    (re.compile(r"_GLOBAL_OFFSET_TABLE_|_DYNAMIC|link_map"), rules.SYMBOLS),
    (re.compile(r"environ|__libc_start_main"), rules.PARENT),
)
_RUNTIME_RESULTS = ("cudaError_t", "cudaError", "CUresult", "hipError_t")
_RUNTIME_FUNCTION = re.compile(r"(?:cuda|cu|hip)[A-Z]\w*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """A word of native text; comments are not among them."""

    kind: str
    text: str
    line: int
    """From 1 within the text."""


def looks_native(text: str) -> bool:
    """Whether a string is worth reading as native code; prose has no statements."""
    return "(" in text and (";" in text or "{" in text)


def tokens(text: str) -> Iterator[Token]:
    """The words of native text. Anything at all has some: what cannot be read is a word of one character."""
    line, counted = 1, 0
    for match in _TOKEN.finditer(text.replace("\\\n", "")):
        line += match.string.count("\n", counted, match.start())
        counted = match.start()
        kind = match.lastgroup or "other"
        if kind != "comment":
            yield Token(kind=kind, text=match.group(), line=line)


def native_findings(text: str) -> Iterator[tuple[Rule, int, str]]:
    """Every rule that native text meets, with its line within the text and the word that met it."""
    words = list(tokens(text))
    names = [token for token in words if token.kind == "name"]
    for index, token in enumerate(words):
        if token.kind == "name":
            rule = _rule_of_name(words, index)
            if rule:
                yield rule, token.line, token.text
        elif token.kind in ("text", "raw"):
            yield from ((rule, token.line, token.text) for pattern, rule in RULES_BY_TEXT if pattern.search(token.text))
    if any(token.kind == "paste" for token in words):
        yield from _pasted(names)


def _rule_of_name(words: Sequence[Token], index: int) -> Rule | None:
    token = words[index]
    if token.text == "constructor" and _text(words, index - 1) == "(" and _text(words, index - 2) == "(":
        return rules.CONSTRUCTOR
    is_called = _text(words, index + 1) == "(" and not _is_member(words, index)
    if is_called and _text(words, index - 1) in _RUNTIME_RESULTS and _RUNTIME_FUNCTION.fullmatch(token.text):
        return rules.INTERPOSITION
    for pattern, named in _NAMES:
        if pattern.fullmatch(token.text.removeprefix("::")):
            return named
    if not is_called:
        return None
    rule = _RULES_BY_CALL.get(token.text.rpartition("::")[2])
    is_aimed_up = rule is rules.SIGNALS and (
        _text(words, index + 2).endswith("getppid") or (_text(words, index + 2), _text(words, index + 3)) == ("-", "1")
    )
    return rules.KILL if is_aimed_up else rule


def _is_member(words: Sequence[Token], index: int) -> bool:
    """Whether the name follows . or ->, which makes it a method of the candidate's own."""
    return _text(words, index - 1) == "." or _text(words, index - 2) + _text(words, index - 1) == "->"


def _pasted(names: Sequence[Token]) -> Iterator[tuple[Rule, int, str]]:
    """Names that macros may paste together from neighbours, such as PASTE(pt, race)."""
    yield rules.PASTING, names[0].line if names else 1, "##"
    for one, other in itertools.pairwise(names):
        rule = _RULES_BY_CALL.get(one.text + other.text)
        if rule:
            yield rule, one.line, one.text + other.text


def _text(words: Sequence[Token], index: int) -> str:
    return words[index].text if 0 <= index < len(words) else ""
