"""DBOS: workflows of three steps, started at once; how many a second, and how soon one of a queue starts."""

import sqlite3
import sys
import threading
import time

from dbos import DBOS, DBOSConfig
from figures import WARM_UP, answer, orders

url = sys.argv[1]
config: DBOSConfig = {"name": "bench", "system_database_url": url, "run_admin_server": False, "log_level": "ERROR"}
if url.startswith("sqlite"):  # at its best, which is not how it comes
    with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
        file.execute("PRAGMA journal_mode = WAL")
DBOS(config=config)
began = threading.Event()


@DBOS.step()
def step(number: int) -> int:
    return number + 1


@DBOS.workflow()
def job(number: int) -> int:
    began.set()
    return step(step(step(number)))


def through(jobs: int) -> float:
    started = time.perf_counter()
    handles = [DBOS.start_workflow(job, number) for number in range(jobs)]
    for handle in handles:
        handle.get_result()
    return jobs / (time.perf_counter() - started)


def start() -> float:
    time.sleep(0.02)
    began.clear()
    started = time.perf_counter()
    handle = DBOS.enqueue_workflow("queue", job, 0)
    began.wait()
    took = time.perf_counter() - started
    handle.get_result(polling_interval_sec=0.01)
    return took


DBOS.launch()
DBOS.register_queue("queue", polling_interval_sec=0.01)
through(WARM_UP)
if url.startswith("postgresql"):
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")
for what, count in orders():
    answer(through(count) if what == "through" else [start() for _ in range(count)])
DBOS.destroy()
