"""SQLAlchemy's requirements of SQLite, where they name each driver of SQLite but this one."""

from sqlalchemy.testing import exclusions
from test.requirements import DefaultRequirements


class Requirements(DefaultRequirements):
    @property
    def dbapi_lastrowid(self):
        return exclusions.open()
