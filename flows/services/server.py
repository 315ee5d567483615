"""Asking whether a Prefect server answers, without importing prefect."""

import urllib.error
import urllib.request

PATIENCE_S = 2.0


def is_alive(api_url: str) -> bool:
    """Whether something healthy answers at a Prefect API address such as http://127.0.0.1:4200/api."""
    try:
        with urllib.request.urlopen(f"{api_url.rstrip('/')}/health", timeout=PATIENCE_S) as answer:
            return answer.status == 200
    except (OSError, ValueError):
        return False
