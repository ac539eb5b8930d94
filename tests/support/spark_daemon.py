"""Spark's parent of workers, for tests: it has imported everything, so that a worker is only a fork.

Every task that fails ends its worker, and the next one would import and load the package again: some seconds
of a processor each time. Spark starts this by the setting ``spark.python.daemon.module``.
"""

import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import targetdp.release._engine._spark_tasks  # noqa: F401
from support.zygote import load_kernels

if __name__ == "__main__":
    load_kernels()
    manager()
