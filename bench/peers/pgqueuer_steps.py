"""pgqueuer: a job of three steps, each on record before the next; how many a second, and how soon one starts.

The library knows no steps, so the job keeps a table of its own: it asks once which steps are done, as one that is taken
up again after a crash must, and writes one row a step.
"""

import asyncio
import sys
import time
from datetime import timedelta

import asyncpg
from figures import WARM_UP, answer, orders
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

url = sys.argv[1]


async def main() -> None:
    ended: list[int] = []
    began = asyncio.Event()
    async with asyncpg.create_pool(url, min_size=8, max_size=8) as pool:
        queries = Queries(AsyncpgPoolDriver(pool))
        await queries.install()
        await pool.execute("CREATE TABLE steps (job bigint, number int, PRIMARY KEY (job, number))")
        queuer = PgQueuer(AsyncpgPoolDriver(pool))

        @queuer.entrypoint("job")
        async def job(job: Job) -> None:
            began.set()
            done = {row["number"] for row in await pool.fetch("SELECT number FROM steps WHERE job = $1", job.id)}
            for number in range(3):
                if number not in done:
                    await pool.execute("INSERT INTO steps (job, number) VALUES ($1, $2)", job.id, number)
            ended.append(job.id)

        async def through(jobs: int) -> float:
            ended.clear()
            started = time.perf_counter()
            await queries.enqueue(["job"] * jobs, [b""] * jobs, [0] * jobs)
            while len(ended) < jobs:  # noqa: ASYNC110  the worker is the library's own
                await asyncio.sleep(0.005)
            return jobs / (time.perf_counter() - started)

        async def start() -> float:
            await asyncio.sleep(0.02)
            began.clear()
            started = time.perf_counter()
            await queries.enqueue("job", b"")
            await began.wait()
            return time.perf_counter() - started

        running = asyncio.create_task(queuer.run(dequeue_timeout=timedelta(seconds=30), batch_size=50))
        await through(WARM_UP)
        await pool.execute("ANALYZE")
        for what, count in orders():
            answer(await through(count) if what == "through" else [await start() for _ in range(count)])
        queuer.shutdown.set()
        running.cancel()
        await asyncio.wait({running})


asyncio.run(main())
