"""A process that compiles requests: one line of JSON in, one line of JSON out."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from ascendkit.jit.errors import CompileError
from ascendkit.jit.request import Request
from ascendkit.jit.runtime import Runtime


def serve() -> None:
    """Answer requests from stdin until it closes. What else prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    runtimes: dict[tuple[object, ...], Runtime[Any, Any]] = {}
    for line in sys.stdin:
        print(json.dumps(_answer(line, runtimes)), file=answers, flush=True)


def _answer(line: str, runtimes: dict[tuple[object, ...], Runtime[Any, Any]]) -> dict[str, object]:
    try:
        request = Request.parse(line)
        backend = request.backend
        key = (type(backend), json.dumps(backend.arguments(), sort_keys=True), request.config)
        if key not in runtimes:
            runtimes[key] = Runtime(backend, request.config)
        folder = runtimes[key].compile_without_load(request.tag, request.source, request.options)
        return {"folder": str(folder)}
    except CompileError as error:
        return {"compile_error": [error.kernel, error.problem, list(error.command), error.output]}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
