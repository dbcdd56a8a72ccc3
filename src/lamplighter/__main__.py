"""The way in: `lamp`, or `python -m lamplighter`."""

import sys


def main() -> None:
    if sys.argv[1:] == ["--version"]:  # scripts ask this often; it needs nothing else loaded
        from lamplighter import __version__

        sys.stdout.write(f"lamp {__version__}\n")
        return
    from lamplighter.cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
