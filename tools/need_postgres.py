"""Exits 0 when this machine has a PostgreSQL server program that tests can start, else 1."""

import sys

from lamplighter.testing.postgres import NoPostgres, binaries

try:
    print(f"PostgreSQL for tests: {binaries()}")
except NoPostgres:
    sys.exit(1)
