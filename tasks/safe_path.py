"""Where Python that is started looks for modules."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def outside_of_this_folder() -> Iterator[None]:
    """Have Python that is started meanwhile look for no modules in the folder where we are.

    Otherwise `python -c` does so first, and a random.py of the user's stands for the library's.
    """
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before
