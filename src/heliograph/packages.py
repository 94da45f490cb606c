"""Packages of others, imported for less: every start pays for imports.

An `__init__` may import much that is not used here (kafka-python's consumers and producers, Spark's SQL): it runs with the first
use of what it defines, submodules are imported as ever. And Spark puts archives of its own packages in front of the installed
ones, whose modules Python compiles anew each time.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from pathlib import Path
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


def without_archives(path: Sequence[str]) -> list[str]:
    """A search path without the zips of an installed PySpark (pyspark/python/lib/) that has it and py4j unpacked as well."""
    return [entry for entry in path if not _is_twin(Path(entry), path)]


def _is_twin(archive: Path, path: Sequence[str]) -> bool:
    package = archive.parent.parent.parent
    if archive.suffix != ".zip" or archive.parent != package / "python" / "lib" or str(package.parent) not in path:
        return False
    return all((package.parent / name / "__init__.py").is_file() for name in ("pyspark", "py4j"))
