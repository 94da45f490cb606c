"""Packages of others whose `__init__` imports much that is not used here: it runs with the first use of what it defines.

Every start pays for imports: kafka-python's consumers and producers, and Spark's SQL, are a third of the driver's. Submodules
are imported as ever.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any


def put_off_init(name: str) -> None:
    """Import the package without running its `__init__`; it runs when something other than a submodule is asked for."""
    spec = None if name in sys.modules else find_spec(name)
    if spec is None:
        return  # it ran already, or is missing, which the next import says better
    package = module_from_spec(spec)
    package.__dict__["__getattr__"] = lambda attribute: _found(package, spec, attribute)
    sys.modules[name] = package
    above, _, last = name.rpartition(".")
    if above:
        setattr(sys.modules[above], last, package)


def _found(package: ModuleType, spec: ModuleSpec, attribute: str) -> Any:
    submodule = f"{spec.name}.{attribute}"
    if find_spec(submodule) is not None:
        return import_module(submodule)
    package.__dict__.pop("__getattr__", None)
    if spec.loader is not None:
        spec.loader.exec_module(package)
    return getattr(package, attribute)
