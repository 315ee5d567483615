"""What static findings look for in Python text: dotted names, attributes and words in strings, each with its tier.

The tier says what a person should think, not what the judge does: info is found in honest programs every day,
suspicious rarely, and fatal serves nothing but an attack.
"""

import re
from dataclasses import dataclass
from enum import StrEnum


class Tier(StrEnum):
    """How much a finding says about the intent; the order is that of severity."""

    INFO = "info"
    SUSPICIOUS = "suspicious"
    FATAL = "fatal"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One thing to look for; where it is found is the Finding."""

    name: str
    tier: Tier
    words: str
    """What the program does, as the end of "the candidate ..."."""


def _info(name: str, words: str) -> Rule:
    return Rule(name=name, tier=Tier.INFO, words=words)


def _suspicious(name: str, words: str) -> Rule:
    return Rule(name=name, tier=Tier.SUSPICIOUS, words=words)


def _fatal(name: str, words: str) -> Rule:
    return Rule(name=name, tier=Tier.FATAL, words=words)


UNREADABLE = _info("unreadable", "is not Python text")
STREAM = _info("stream", "uses a stream of its own")
THREAD = _info("thread", "works with threads")
CATCHES = _info("catches_errors", "catches exceptions")
POINTER = _info("pointer", "looks at addresses or identities of objects")
CACHE = _info("cache", "keeps a cache")
CLOCK = _info("clock", "reads a clock")
PRECISION = _info("precision", "computes at another precision")
SETTING = _info("setting", "changes a setting of a library")
COUNTER = _info("counter", "counts its calls")
TRAINING = _info("training_flag", "asks whether it is in training mode")
PROCESS = _info("process", "starts another program")
NATIVE = _info("native_library", "loads native code")
FILES = _info("files", "opens files")
RANDOM = _info("random_state", "touches the state of a random generator")
RUNS_TEXT = _info("runs_text", "runs program text that it holds as a literal")
DYNAMIC_NAME = _info("dynamic_name", "looks up a name that is made while it runs")
PASTING = _info("token_pasting", "makes names by pasting tokens in macros")
ASSEMBLY = _info("assembly", "contains assembly")

FRAMES = _suspicious("frames", "reads the frames of its callers")
COLLECTOR = _suspicious("collector", "walks the objects of the garbage collector")
PROC = _suspicious("proc", "reads about processes in /proc")
PATCH = _suspicious("patch", "replaces a part of another module")
TENSOR_SUBCLASS = _suspicious("tensor_subclass", "makes tensors of a class of its own")
TORCH_MODE = _suspicious("torch_mode", "intercepts every call of torch")
CONTAINER_SUBCLASS = _suspicious("container_subclass", "derives from a built-in container or number")
CLASS_ASSIGNMENT = _suspicious("class_assignment", "changes a class, a method or a function's code while it runs")
COMPARISON = _suspicious("comparison", "defines what equality means")
PICKLING = _suspicious("pickling", "defines how it is pickled")
HIDDEN_TEXT = _suspicious("hidden_text", "runs or looks up text that cannot be read here")
EXIT = _suspicious("exit", "ends its process")
SIGNALS = _suspicious("signals", "handles or sends signals")
EXIT_HANDLER = _suspicious("exit_handler", "leaves work to be done at exit")
TRACE = _suspicious("trace", "installs a tracing or profiling hook")
FORK = _suspicious("fork", "makes processes that could outlive it")
DESCRIPTORS = _suspicious("descriptors", "works on file descriptors that it did not open")
SCHEDULING = _suspicious("scheduling", "changes priorities, cores or limits")
HOOKS = _suspicious("global_hooks", "registers hooks on all modules")
MEMORY = _suspicious("memory", "works on memory by its address")
NETWORK = _suspicious("network", "talks to the network")
PARENT = _suspicious("parent", "asks for its parent process")
INSTALLATION = _suspicious("installation", "looks for the installed packages' files")
SECRETS = _suspicious("secrets", "looks for keys or passwords")
STALE_MEMORY = _suspicious("cache_residency", "pins data in the device's cache")
CONSTRUCTOR = _suspicious("constructor", "runs native code as soon as it is loaded")
SYMBOLS = _suspicious("symbols", "looks up or rewrites symbols of loaded libraries")
SYSTEM_CALL = _suspicious("system_call", "calls the kernel directly")

PTRACE = _fatal("ptrace", "attaches to other processes")
KILL = _fatal("kill", "kills its parent or every process")
PRELOAD = _fatal("preload", "has libraries loaded into other programs")
PROCESS_MEMORY = _fatal("process_memory", "writes into the memory of processes or of the machine")
FORK_BOMB = _fatal("fork_bomb", "forks without end")
JUDGE = _fatal("judge", "reaches into the program that judges it")
INTERPOSITION = _fatal("interposition", "redefines functions of the CUDA runtime")

# By dotted name; a name stands for everything below it. The longest match wins.
_REFERENCES = {
    STREAM: "torch.cuda.Stream torch.cuda.ExternalStream torch.cuda.stream torch.cuda.set_stream torch.Stream",
    THREAD: "threading _thread concurrent.futures asyncio queue",
    CACHE: "functools.lru_cache functools.cache functools.cached_property weakref contextvars",
    CLOCK: "time timeit torch.cuda.Event torch.profiler",
    PRECISION: "torch.float16 torch.half torch.bfloat16 torch.int8 torch.autocast torch.amp torch.cuda.amp "
    "torch.set_float32_matmul_precision torch.set_default_dtype",
    SETTING: "torch.set_num_threads torch.use_deterministic_algorithms torch.set_flush_denormal",
    PROCESS: "subprocess os.system os.popen shutil.which",
    NATIVE: "ctypes cffi torch.utils.cpp_extension torch.ops.load_library",
    FILES: "open io.open os.open pathlib tempfile shutil glob torch.load torch.save",
    RANDOM: "torch.manual_seed torch.initial_seed torch.get_rng_state torch.random torch.Generator random.seed",
    POINTER: "id",
    FRAMES: "sys._getframe sys._current_frames inspect.stack inspect.currentframe inspect.getouterframes "
    "traceback.walk_stack traceback.extract_stack sys.exc_info",
    COLLECTOR: "gc.get_objects gc.get_referrers gc.get_referents",
    TENSOR_SUBCLASS: "torch.Tensor._make_subclass torch.Tensor._make_wrapper_subclass torch.Tensor.as_subclass",
    HIDDEN_TEXT: "base64 codecs.decode bytes.fromhex marshal zlib.decompress lzma.decompress",
    EXIT: "os._exit os.abort sys.exit exit quit SystemExit KeyboardInterrupt GeneratorExit faulthandler._sigsegv",
    SIGNALS: "signal os.kill os.killpg signal.pidfd_send_signal",
    EXIT_HANDLER: "atexit weakref.finalize",
    TRACE: "sys.settrace sys.setprofile threading.settrace threading.setprofile sys.addaudithook sys.monitoring",
    FORK: "os.fork os.forkpty os.setsid os.setpgid os.setpgrp os.posix_spawn os.execv os.execve multiprocessing "
    "torch.multiprocessing",
    DESCRIPTORS: "os.write os.pwrite os.dup os.dup2 os.fdopen os.sendfile os.closerange",
    SCHEDULING: "os.nice os.sched_setaffinity os.sched_setscheduler os.setpriority resource.setrlimit",
    HOOKS: "torch.nn.modules.module",
    MEMORY: "ctypes.memmove ctypes.memset ctypes.string_at ctypes.pythonapi mmap torch.frombuffer",
    NETWORK: "socket urllib http requests httpx aiohttp ftplib smtplib",
    PARENT: "os.getppid psutil",
    PATCH: "unittest.mock",
    JUDGE: "tasks flows",
}  # fmt: skip
RULES_BY_REFERENCE = {name: rule for rule, names in _REFERENCES.items() for name in names.split()}

# By an attribute's name, whatever it is an attribute of.
_ATTRIBUTES = {
    POINTER: "data_ptr untyped_storage _version _cdata",
    PRECISION: "bfloat16 half allow_tf32",
    FRAMES: "f_back f_globals f_locals f_builtins tb_frame gi_frame cr_frame __globals__",
    MEMORY: "from_address from_buffer",
    TENSOR_SUBCLASS: "as_subclass _make_subclass _make_wrapper_subclass",
    CLASS_ASSIGNMENT: "__subclasses__",
}
RULES_BY_ATTRIBUTE = {name: rule for rule, names in _ATTRIBUTES.items() for name in names.split()}

RULES_BY_METHOD = {
    "__torch_function__": TENSOR_SUBCLASS,
    "__torch_dispatch__": TENSOR_SUBCLASS,
    "__eq__": COMPARISON,
    "__reduce__": PICKLING,
    "__reduce_ex__": PICKLING,
}
RULES_BY_BASE = {
    "torch.Tensor": TENSOR_SUBCLASS,
    "torch.nn.Parameter": TENSOR_SUBCLASS,
    "torch.overrides.TorchFunctionMode": TORCH_MODE,
    "torch.utils._python_dispatch.TorchDispatchMode": TORCH_MODE,
    "BaseException": EXIT,
} | dict.fromkeys(("tuple", "list", "dict", "str", "bytes", "int", "float", "bool"), CONTAINER_SUBCLASS)

# Searched in strings that are not docstrings; * stands for what an f-string fills in.
RULES_BY_TEXT = (
    (re.compile(r"/proc/[^/\s]+/mem\b|/dev/k?mem\b|/proc/sysrq-trigger"), PROCESS_MEMORY),
    (re.compile(r"\bLD_(?:PRELOAD|AUDIT)\b|/etc/ld\.so\.preload"), PRELOAD),
    (re.compile(r"/proc(?!/(?:cpuinfo|meminfo)\b)(?:/|$)|/sys/fs/cgroup"), PROC),
    (re.compile(r"\b(?:site|dist)-packages\b|\b(?:site|user)customize\b"), INSTALLATION),
    (re.compile(r"(?i)api_?key|secret|password|[a-z]_token\b"), SECRETS),
    (re.compile(r"\bhttps?://|\b(?:curl|wget|pip3? install)\b"), NETWORK),
)


def rule_of(name: str) -> Rule | None:
    """The rule for a dotted name: that of the longest name above it, itself included."""
    while name:
        if name in RULES_BY_REFERENCE:
            return RULES_BY_REFERENCE[name]
        name = name.rpartition(".")[0]
    return None
