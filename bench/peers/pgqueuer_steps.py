"""pgqueuer: jobs of three entries, each enqueuing the next; prints how many a second."""

import asyncio
import sys
import time
from datetime import timedelta

import psycopg
from pgqueuer import PgQueuer
from pgqueuer.db import PsycopgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

url, count = sys.argv[1], int(sys.argv[2])


async def main() -> None:
    ended: list[int] = []
    async with (
        await psycopg.AsyncConnection.connect(url, autocommit=True) as connection,
        await psycopg.AsyncConnection.connect(url, autocommit=True) as other,
    ):
        queries = Queries(PsycopgDriver(other))
        await queries.install()
        queuer = PgQueuer(PsycopgDriver(connection))

        def entry(number: int) -> None:
            @queuer.entrypoint(f"step{number}")
            async def work(job: Job) -> None:
                if number == 2:
                    ended.append(job.id)
                else:
                    await queries.enqueue(f"step{number + 1}", job.payload)

        for number in range(3):
            entry(number)
        began = time.perf_counter()
        await queries.enqueue(["step0"] * count, [b""] * count, [0] * count)
        running = asyncio.create_task(queuer.run(dequeue_timeout=timedelta(milliseconds=50), batch_size=50))
        while len(ended) < count:  # noqa: ASYNC110  the worker is the library's own
            await asyncio.sleep(0.005)
        print(count / (time.perf_counter() - began), flush=True)
        queuer.shutdown.set()
        running.cancel()
        await asyncio.wait({running})


asyncio.run(main())
