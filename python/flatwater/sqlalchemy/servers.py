"""The dialects for databases on servers.

Owns the address of a server in the form of SQLAlchemy's URLs, which hide a password when they are shown. Invariant: the
SQL is that of SQLite. Leaves out everything else (`dialect`).

    create_async_engine("libsql+flatwater://:token@db.example.com")
    create_async_engine("rqlite+flatwater://user:password@10.0.0.1:4001/?host=10.0.0.2", isolation_level="AUTOCOMMIT")
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from sqlalchemy import pool
from sqlalchemy.engine.url import URL
from sqlalchemy.exc import ArgumentError

from .dialect import FlatwaterDialect


class ServerDialect(FlatwaterDialect):
    """A database on a server."""

    supports_statement_cache = True
    # Where the URL has a token in the place of a password.
    has_tokens = False
    scheme = ""

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """Connections of one engine are one connection to the server each."""
        return pool.AsyncAdaptedQueuePool

    def create_connect_args(self, url: URL) -> Any:
        """The address: `host` names further nodes, or replicas; the other keys are the settings of an address."""
        settings = {
            key: value for key, value in url.query.items() if key not in ("host", "tls" if not self.has_tokens else "")
        }
        tls = url.query.get("tls", "0")
        if not self.has_tokens and tls not in ("0", "1"):
            raise ArgumentError("tls is 0 or 1")
        more = url.query.get("host", ())
        hosts = [_host(url), *((more,) if isinstance(more, str) else more)]
        user = ""
        if self.has_tokens and url.password and not url.username:
            settings["authToken"] = str(url.password)
        elif url.username:
            user = f"{quote(url.username, safe='')}:{quote(str(url.password or ''), safe='')}@"
        scheme = f"{self.scheme}s" if not self.has_tokens and tls == "1" else self.scheme
        keys = "/?" + urlencode(settings) if settings else ""
        return [f"{scheme}://{user}{','.join(host for host in hosts if host)}{keys}"], {}


class RqliteDialect(ServerDialect):
    """`rqlite+flatwater://`. A cluster has no interactive transactions: with the isolation level AUTOCOMMIT each
    statement is applied when it is executed, and without it the first one that writes says so."""

    supports_statement_cache = True
    scheme = "rqlite"


class LibsqlDialect(ServerDialect):
    """`libsql+flatwater://`."""

    supports_statement_cache = True
    has_tokens = True
    scheme = "libsql"


def _host(url: URL) -> str:
    host = url.host or ""
    host = f"[{host}]" if ":" in host else host
    return f"{host}:{url.port}" if url.port else host
