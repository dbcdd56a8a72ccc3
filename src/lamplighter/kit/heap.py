"""The collector of garbage in a process that lives long."""

import gc

YOUNG = 20_000
"""Objects made before the young ones are looked through. The usual 700 are what a few runs leave behind, all of it
alive while they wait for the database."""


def settle() -> None:
    """What is loaded by now stays until the end: full collections need not walk over it, which stops all for 50 ms."""
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 100)
