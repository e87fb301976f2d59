"""JSON documents as values of columns.

Owns reading one. Called by the native part. Invariant: what is not JSON is a `ValueError`: other parsers would not read
NaN and Infinity, which Python's does. Leaves out binding one (`values`).
"""

from __future__ import annotations

import json
from typing import NoReturn


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


parse = json.JSONDecoder(parse_constant=_refuse).decode
