"""Procrastinate: jobs of three tasks, each deferring the next; how many a second, and how soon one starts."""

import asyncio
import sys
import time

import procrastinate
import psycopg
from figures import WARM_UP, answer, orders

url = sys.argv[1]
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))
ended: list[int] = []
began = asyncio.Event()


@app.task(name="step")
async def step(number: int, left: int) -> None:
    began.set()
    if left:
        await step.defer_async(number=number, left=left - 1)
    else:
        ended.append(number)


async def through(jobs: int) -> float:
    ended.clear()
    started = time.perf_counter()
    await asyncio.gather(*(step.defer_async(number=number, left=2) for number in range(jobs)))
    while len(ended) < jobs:  # noqa: ASYNC110  the worker is the library's own
        await asyncio.sleep(0.005)
    return jobs / (time.perf_counter() - started)


async def start() -> float:
    await asyncio.sleep(0.02)
    began.clear()
    started = time.perf_counter()
    await step.defer_async(number=0, left=0)
    await began.wait()
    return time.perf_counter() - started


async def main() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        worker = asyncio.create_task(app.run_worker_async(concurrency=50, install_signal_handlers=False))
        await through(WARM_UP)
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute("ANALYZE")
        for what, count in orders():
            answer(await through(count) if what == "through" else [await start() for _ in range(count)])
        worker.cancel()
        await asyncio.wait({worker})


asyncio.run(main())
