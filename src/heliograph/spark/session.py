"""Create and stop the Spark session: the settings that an application of long Python tasks needs, and silence.

Driver only. Why each setting is there: docs/decisions/0003-spark-settings.md.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import gettempdir

import heliograph
from heliograph.errors import SetupError
from heliograph.spark.class_archive import archive_option
from heliograph.spark.elsewhere import JVM_OPTIONS, executor_settings, pack
from heliograph.spark.java import java_environment
from heliograph.spark.pyspark_core import SparkConf, SparkContext, accumulators

_DRIVER_OPTIONS = f"{JVM_OPTIONS} -Djava.net.preferIPv4Stack=true"
_SETTINGS = {
    "spark.app.name": "heliograph",
    "spark.driver.memory": "512m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.python.task.killTimeout": "100ms",
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "2s",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.speculation": "false",
    "spark.excludeOnFailure.enabled": "false",
    "spark.task.maxFailures": "4",
}
_TASK_ATTEMPTS = 4


def local_master(slots: int) -> str:
    """Room for two epochs at a time, and retries: plain local[n] fails a whole job with its first lost worker."""
    return f"local[{2 * slots},{_TASK_ATTEMPTS}]"


def start_session(master: str, settings: Mapping[str, str], log: Path) -> SparkContext:
    """A context on `master`; what the JVM prints goes to `log`. SetupError where it does not come up."""
    # When a session ends, this server of PySpark's prints a stack trace for the connection that ends with it.
    setattr(accumulators.AccumulatorTCPServer, "handle_error", lambda *_: None)  # noqa: B010  mypy forbids assigning methods
    os.environ.update(java_environment(os.environ))
    os.environ["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Of the JVM that spark-submit asks for the command line of the other: it lives for a fifth of a second.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", JVM_OPTIONS)
    is_local, package = master.startswith("local"), Path(gettempdir()) / f"heliograph-{os.getpid()}.zip"
    if not is_local:
        settings = executor_settings(settings, package.name, archive_option())
    conf = SparkConf(loadDefaults=True).setMaster(master)
    for name, value in {**_SETTINGS, **settings}.items():
        conf.set(name, value)
    if is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
        conf.set("spark.python.daemon.module", "heliograph.spark.daemon")
    with as_file(files("heliograph.spark") / "log4j2.properties") as quiet, ThreadPoolExecutor(1) as aside:
        packed = None if is_local else aside.submit(pack, Path(heliograph.__file__).parent, package)
        own = settings.get("spark.driver.extraJavaOptions", "")
        archive = "" if "Archive" in own else archive_option()
        options = f"{_DRIVER_OPTIONS} -Dlog4j2.configurationFile={quiet} {archive} {own}"
        conf.set("spark.driver.extraJavaOptions", options.strip())
        try:
            with _stderr_to(log):
                context = SparkContext(conf=conf)
        except Exception as error:  # Py4J raises many kinds; here they all mean: no session
            forget_session()
            raise SetupError(f"Spark did not start on {master}: {_first_line(error)}; see {log}") from error
    context.setLogLevel("OFF")
    if packed is not None:
        # For executors that do not have it; what it depends on must be installed there.
        context.addPyFile(str(packed.result()))
    return context


def stop_session(context: SparkContext) -> None:
    with contextlib.suppress(Exception):  # a JVM that is gone cannot be stopped
        context.stop()
    forget_session()


def end_session(context: SparkContext) -> None:
    """As `stop_session`, but wait for the JVM, however long it takes over its end."""
    gateway = context._gateway
    assert gateway is not None  # noqa: S101  a context has one
    context.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    forget_session()


def forget_session() -> None:
    """Forget a JVM so that the next context starts another; PySpark keeps one per process for ever otherwise."""
    gateway = SparkContext._gateway
    if gateway is not None:
        process = getattr(gateway, "proc", None)
        with contextlib.suppress(Exception):  # its JVM may be gone
            gateway.shutdown()
        if process is not None:
            process.stdin.close()
            with contextlib.suppress(Exception):  # killed below if it does not leave by itself
                process.wait(3)
            process.kill()
            process.wait()
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None


@contextlib.contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """The JVM inherits our standard error; its warnings are not for the person at the terminal."""
    log.parent.mkdir(parents=True, exist_ok=True)
    kept = os.dup(2)
    with log.open("ab") as stream:
        os.dup2(stream.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
