"""The collector of garbage in a process that lives long."""

import gc


def settle() -> None:
    """What is loaded by now stays until the end: full collections need not walk over it, which stops all for 50 ms."""
    gc.freeze()
