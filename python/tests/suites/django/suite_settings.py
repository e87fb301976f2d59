"""The settings for Django's own tests: two databases of the engine that ENGINE names, in memory or in the folder
FILES, and a runner that writes outcomes."""

import os

DATABASES = {alias: {"ENGINE": os.environ["ENGINE"]} for alias in ("default", "other")}
if folder := os.environ.get("FILES"):
    for alias, settings in DATABASES.items():
        settings["TEST"] = {"NAME": os.path.join(folder, f"{alias}.db")}
SECRET_KEY = "of the tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "suite_outcomes.Runner"
