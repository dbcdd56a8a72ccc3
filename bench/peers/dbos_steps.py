"""DBOS: workflows of three steps, started at once; prints how many a second."""

import sys
import time

from dbos import DBOS, DBOSConfig

url, count = sys.argv[1], int(sys.argv[2])
config: DBOSConfig = {"name": "bench", "system_database_url": url, "run_admin_server": False, "log_level": "ERROR"}
DBOS(config=config)


@DBOS.step()
def step(number: int) -> int:
    return number + 1


@DBOS.workflow()
def job(number: int) -> int:
    return step(step(step(number)))


DBOS.launch()
began = time.perf_counter()
handles = [DBOS.start_workflow(job, number) for number in range(count)]
for handle in handles:
    handle.get_result()
print(count / (time.perf_counter() - began))
DBOS.destroy()
