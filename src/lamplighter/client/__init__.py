"""The client of a city's HTTP API: operations of the one table, asked of a city on any machine.

`Client` waits for each answer, `AsyncClient` is awaited; both are faces of one core (`calls`, `following`).
"""

from lamplighter.client.asynchronous import AsyncClient
from lamplighter.client.calls import Retries
from lamplighter.client.synchronous import Client

__all__ = ["AsyncClient", "Client", "Retries"]
