"""What it means that the model registry does not do as it was asked, and whether asking again can help."""

import errno

from tasks.errors import CudaL1Error, MachineError, RetryableError

_REFUSALS = ("UNAUTHENTICATED", "CUSTOMER_UNAUTHORIZED", "PERMISSION_DENIED", "INVALID_PARAMETER_VALUE")
_REFUSED_STATUS = (401, 403)
_REFUSED_ERRNO = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)


class RegistryError(RetryableError):
    """The model registry does not answer."""


def registry_error(uri: str, error: Exception) -> CudaL1Error:
    """Our error for one of MLflow's or of the system's; only one that may pass by itself is worth another try."""
    reason = str(error).strip().partition("\n")[0]
    if _is_refusal(error):
        return MachineError(
            f"the model registry at {uri} refuses what it was asked: {reason}; mend the credentials, the space or the "
            f"permissions, then retrain again"
        )
    return RegistryError(f"the model registry at {uri} does not do what it was asked: {reason}")


def _is_refusal(error: Exception) -> bool:
    if getattr(error, "error_code", None) in _REFUSALS:
        return True
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status in _REFUSED_STATUS or getattr(error, "errno", None) in _REFUSED_ERRNO
