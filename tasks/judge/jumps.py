"""When a speedup is so good that it deserves a question before it is believed."""


def jump(speedup: float, *, best: float | None, times_reference: float, times_best: float) -> str:
    """Why a speedup is a jump, in words; empty when it is none.

    Args:
        best: the problem's best speedup so far; None when none is known.
        times_reference: 3 in the paper.
        times_best: 2 in the paper.

    Source: CUDA-L1 (arXiv:2507.14111), section 3: measured again when above 3x, or above twice the best so far.

    >>> jump(2.5, best=1.2, times_reference=3.0, times_best=2.0)
    '2.50x is more than 2 times the best so far, 1.20x'
    >>> jump(2.5, best=1.3, times_reference=3.0, times_best=2.0)
    ''
    """
    if speedup > times_reference:
        return f"{speedup:.2f}x is more than {times_reference:g}x"
    if best is not None and speedup > times_best * best:
        return f"{speedup:.2f}x is more than {times_best:g} times the best so far, {best:.2f}x"
    return ""
