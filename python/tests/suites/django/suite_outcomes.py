"""A runner for Django's tests that writes what became of each: a JSON object in the file that OUTCOMES names.

Owns the names of outcomes. A test with subtests has the worst of theirs. Leaves out what may differ, and running it.
"""

import json
import os
import unittest
from pathlib import Path

from django.test.runner import DiscoverRunner

WORST = ("error", "failure", "unexpected success", "expected failure", "skipped", "passed")


class Result(unittest.TextTestResult):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.outcomes = {}

    def note(self, test, outcome):
        before = self.outcomes.get(test.id(), "passed")
        self.outcomes[test.id()] = min(before, outcome, key=WORST.index)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "passed")

    def addError(self, test, error):
        super().addError(test, error)
        self.note(test, "error")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.note(test, "failure")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped")

    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error)
        self.note(test, "expected failure")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note(test, "unexpected success")

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.note(test, "failure" if issubclass(error[0], test.failureException) else "error")


class Runner(DiscoverRunner):
    def get_resultclass(self):
        return Result

    def suite_result(self, suite, result, **kwargs):
        Path(os.environ["OUTCOMES"]).write_text(json.dumps(result.outcomes))
        return super().suite_result(suite, result, **kwargs)
