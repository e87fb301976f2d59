"""SQLAlchemy's plugin for its suite, and where the suite's second schema comes from.

SQLAlchemy attaches the file of that schema on every connection, which makes each its own. With ATTACH=option it is an
option of the engine, and connections stay pooled.
"""

import os

import pytest

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403

if os.environ.get("ATTACH") == "option":
    from sqlalchemy import event
    from sqlalchemy.dialects.sqlite import provision as of_sqlite  # noqa: F401, it registers what is replaced here
    from sqlalchemy.testing import provision

    @provision.post_configure_engine.for_db("sqlite")
    def attach(url, engine, follower_ident):
        path = os.path.abspath("option_test_schema.db")

        @event.listens_for(engine, "do_connect")
        def do_connect(dialect, record, args, arguments):
            arguments["tuning"] = {"attach": {"test_schema": path}}
