"""The exceptions. Their texts say what to do."""


class Error(RuntimeError):
    """The base of all exceptions of this package, and the one for misuse."""


class ExporterGone(Error):
    """The process that had to signal the value has ended before it did."""


class Poisoned(Error):
    """The timeline was closed, poisoned, or its context failed, before it reached the value."""


class DriverError(Error):
    """A call of the CUDA driver failed."""

    code: int
    """The number of the driver's code, such as 719."""
    name: str
    """Its name, such as ``CUDA_ERROR_LAUNCH_FAILED``."""

    def __init__(self, text: str, code: int = 999, name: str = "CUDA_ERROR_UNKNOWN") -> None:
        super().__init__(text)
        self.code = code
        self.name = name
