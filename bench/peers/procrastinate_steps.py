"""Procrastinate: jobs of three tasks, each deferring the next; prints how many a second."""

import asyncio
import sys
import time

import procrastinate

url, count = sys.argv[1], int(sys.argv[2])
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))
ended: list[int] = []


@app.task(name="step")
async def step(number: int, left: int) -> None:
    if left:
        await step.defer_async(number=number, left=left - 1)
    else:
        ended.append(number)


async def main() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        worker = asyncio.create_task(app.run_worker_async(concurrency=50, install_signal_handlers=False))
        began = time.perf_counter()
        await asyncio.gather(*(step.defer_async(number=number, left=2) for number in range(count)))
        while len(ended) < count:  # noqa: ASYNC110  the worker is the library's own
            await asyncio.sleep(0.005)
        print(count / (time.perf_counter() - began))
        worker.cancel()
        await asyncio.wait({worker})


asyncio.run(main())
