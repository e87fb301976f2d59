"""In the place of the package that Peewee takes if it is there: `flatwater.dbapi`."""

from flatwater import dbapi as dbapi2

__all__ = ["dbapi2"]
