"""Applications served over real sockets by a thread of this process."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import uvicorn

from local_game import close_workers

__all__ = ["served"]


@contextlib.contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an ASGI application on a free port; yields its URL, and ends SQLGym's workers."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server has not started"
            time.sleep(0.01)
        (port,) = {listener.getsockname()[1] for each in server.servers for listener in each.sockets}
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
        close_workers(app)
