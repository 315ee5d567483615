"""Everything this project raises on purpose.

A failing *candidate* is never an exception: it is a verdict (tasks/judge/verdict.py). An exception means that we, the
machine, the user's input or a service failed, and the one question a caller has is whether trying again can help.
"""


class CudaL1Error(Exception):
    """Base of every error raised by flows/ and tasks/. Its message is written for the user."""


class ParamsError(CudaL1Error, ValueError):
    """params.yaml is missing, unreadable or holds a value we refuse."""


class ProblemError(CudaL1Error, ValueError):
    """A problem file does not parse, lacks a name or does not run."""


class RecordError(CudaL1Error, ValueError):
    """A record contradicts itself or a record already stored."""


class PolicyError(CudaL1Error, ValueError):
    """A model or tokenizer cannot be loaded from where params.yaml says it is."""


class StaleWeightsError(CudaL1Error, RuntimeError):
    """Completions were written with other weights than those that are trained."""


class TrainingError(CudaL1Error, RuntimeError):
    """Training cannot go on as it is: there is nothing to learn from, its numbers left the range of floats,
    its memory or its judge gave out.
    """


class PreemptedError(CudaL1Error, RuntimeError):
    """The machine asked us to end. What was done is kept; the same command goes on with it."""


class MachineError(CudaL1Error, RuntimeError):
    """The machine lacks what the work needs: a compiler, a writable folder, disk space, the promised device."""


class RetryableError(CudaL1Error, RuntimeError):
    """Trying again may help. Flows retry these and nothing else."""


class WorkerError(RetryableError):
    """A judge's own process (not a candidate's) died or stopped answering."""


class FullDeviceError(WorkerError):
    """Others have filled the memory of the device. Whoever comes later, or alone, may have better luck."""


class HistoryBusyError(RetryableError):
    """Another process held the history's lock for longer than we wait."""


class ProviderError(RetryableError):
    """A provider of variants refused, timed out or returned no text."""
