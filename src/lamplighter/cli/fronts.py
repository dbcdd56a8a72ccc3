"""Small fronts for the programs `gc` and `bd` of Gas City: their common verbs, carried out by `lamp`.

Scripts and prompts written for Gas City call these. What a front does not know is refused by name.
"""

import sys
from collections.abc import Sequence

from lamplighter.cli.bd_front import bd_parser
from lamplighter.cli.front_calls import Run, Unknown
from lamplighter.cli.gc_front import gc_parser


def main() -> None:
    from lamplighter.cli.main import run

    sys.exit(front(sys.argv[1], sys.argv[2:], run))


def front(program: str, words: Sequence[str], run: Run) -> int:
    """Carry out a call of `gc` or `bd` by calls of `lamp`; returns the exit code of the first that fails."""
    try:
        asked = (gc_parser() if program == "gc" else bd_parser()).parse_args(list(words))
        code: int = asked.do(asked, run)
    except Unknown as unknown:
        sys.stderr.write(
            f"error: `{program} {' '.join(words[:2])}`: {unknown}\n"
            f" hint: This `{program}` is a front of Lamplighter's for the common verbs; `lamp --help` has the rest.\n"
        )
        return 2
    return code


if __name__ == "__main__":
    main()
