"""PySpark without its SQL, for the driver: a SparkContext is all it needs, and the import a fifth of its start.

Not for the daemon, whose workers are PySpark's own and import all of it.
"""

from __future__ import annotations

import sys
from importlib import import_module

from heliograph.packages import put_off_init

_KNOWN_AS = {
    "pyspark.rdd": "pyspark.core.rdd",
    "pyspark.files": "pyspark.core.files",
    "pyspark.status": "pyspark.core.status",
    "pyspark.broadcast": "pyspark.core.broadcast",
    "pyspark.context": "pyspark.core.context",
}
"""What pyspark/__init__.py lets others go on calling modules."""

put_off_init("pyspark")

import pyspark
from pyspark import accumulators
from pyspark._globals import _NoValue
from pyspark.conf import SparkConf
from pyspark.core.context import SparkContext
from pyspark.version import __version__

pyspark.__dict__["_NoValue"] = _NoValue  # so that pyspark.sql can be imported before the __init__ that imports it
for _old, _new in _KNOWN_AS.items():
    sys.modules.setdefault(_old, import_module(_new))

HOME, VERSION = pyspark.__path__[0], __version__

__all__ = ["HOME", "VERSION", "SparkConf", "SparkContext", "accumulators"]
