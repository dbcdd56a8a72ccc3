"""Prints a Python of the version asked for, such as 3.12: along PATH, of pyenv, of uv; fails if there is none."""

import sys

from run_tests import candidates, version_of


def main(wanted: str) -> int:
    for program in (sys.executable, *candidates()):
        if version_of(program) == wanted:
            print(program)
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
