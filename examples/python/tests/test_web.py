"""The web service: its routes, each case on a database of its own, and four processes of it on one file."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from tasks import app

FOLDER = Path(__file__).parents[1] / "web"


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setenv("TASKS_DB", str(tmp_path / "tasks.db"))
    with TestClient(app) as client:
        yield client


def test_tasks_are_added_listed_and_done(client: TestClient) -> None:
    assert client.get("/tasks").json() == []
    tea = client.post("/tasks", json={"title": 'buy "tea"'})
    assert (tea.status_code, tea.json()) == (201, {"id": 1, "title": 'buy "tea"', "state": "open"})
    rent = client.post("/tasks", json={"title": "pay rent"}).json()
    done = client.patch("/tasks/1", json={"state": "done"})
    assert (done.status_code, done.json()["state"]) == (200, "done")
    assert client.get("/tasks").json() == [rent]
    assert "<h1>Open tasks</h1>" in client.get("/").text


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/tasks", {"title": "buy tea"}, 409),
        ("POST", "/tasks", {"title": ""}, 422),
        ("POST", "/tasks", {}, 422),
        ("PATCH", "/tasks/1", {"state": "lost"}, 422),
        ("PATCH", "/tasks/9", {"state": "done"}, 404),
    ],
)
def test_an_error_is_a_status_and_shows_no_sql(
    client: TestClient, method: str, path: str, body: dict[str, str], status: int
) -> None:
    client.post("/tasks", json={"title": "buy tea"})
    answer = client.request(method, path, json=body)
    assert answer.status_code == status
    assert "INSERT" not in answer.text and "UPDATE" not in answer.text
    assert client.get("/tasks").json() == [{"id": 1, "title": "buy tea", "state": "open"}]


def connect(address: str) -> HTTPConnection:
    """Connects as soon as the service listens."""
    while True:
        connection = HTTPConnection(address, timeout=60)
        with suppress(ConnectionRefusedError):
            connection.connect()
            return connection


def post(address: str, title: str) -> int:
    with closing(connect(address)) as connection:
        connection.request("POST", "/tasks", json.dumps({"title": title}), {"Content-Type": "application/json"})
        return connection.getresponse().status


class Events:
    """A stream of events, as a browser has it open."""

    def __init__(self, address: str) -> None:
        self.connection = connect(address)
        self.connection.request("GET", "/events")
        self.answer = self.connection.getresponse()

    def wait_for(self, titles: list[str]) -> None:
        """Reads events until one has these tasks. A comment comes whenever there was no event for some time."""
        comments = 0
        for line in self.answer:
            comments += line.startswith(b":")
            assert comments < 4, f"no event with {titles}"
            if line.startswith(b"data: ") and [task["title"] for task in json.loads(line[6:])] == titles:
                return
        raise AssertionError(f"the stream ended without {titles}")


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@contextmanager
def only(worker: int, workers: list[int]) -> Iterator[None]:
    """Stops all workers but one, so that it is this one which serves new connections."""
    others = [pid for pid in workers if pid != worker]
    for pid in others:
        os.kill(pid, signal.SIGSTOP)
    try:
        while not all(is_stopped(pid) for pid in others):
            pass
        yield
    finally:
        for pid in others:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.skipif(sys.platform != "linux", reason="whether a process has stopped is read from /proc")
def test_what_one_worker_is_sent_every_other_worker_shows(tmp_path: Path) -> None:
    options = "--workers 4 --port 0 --no-access-log --timeout-graceful-shutdown 1 --timeout-worker-healthcheck 60"
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(FOLDER), "tasks:app", *options.split()]
    place = {**os.environ, "TASKS_DB": str(tmp_path / "tasks.db")}
    with subprocess.Popen(command, env=place, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr
            said = ""
            while said.count("Application startup complete") < 4:
                line = server.stderr.readline()
                assert line, said
                said += line
            address = re.findall(r"http://([\d.:]+)", said)[0]
            workers = [int(pid) for pid in re.findall(r"Started server process \[(\d+)\]", said)]
            streams = []
            for worker in workers:
                with only(worker, workers):
                    streams.append(Events(address))
            titles: list[str] = []
            for worker in workers:
                with only(worker, workers):
                    titles.append(f"a task for {worker}")
                    assert post(address, titles[-1]) == 201
                for stream in streams:
                    stream.wait_for(titles)
        finally:
            server.terminate()
            server.communicate()
    for stream in streams:
        stream.connection.close()
    assert server.returncode == 0
