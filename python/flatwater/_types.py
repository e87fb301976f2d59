"""Types of arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Union

Params = Union[Sequence[Any], Mapping[str, Any], None]
"""The parameters of a statement: values in order, or values by name."""
