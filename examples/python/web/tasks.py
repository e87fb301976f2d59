"""A list of tasks as a web service, on FastAPI, with a page that shows each change at once, by server-sent events.

It shows a database that is opened and closed with the service, and given to the routes by a dependency; rows as JSON
and as models; a live query as a stream of events; errors as status codes. `examples/python/tests/test_web.py` shows how
it is tested.

    pip install ./python --requirement examples/python/requirements.txt
    uvicorn --app-dir examples/python/web tasks:app --workers 4 --timeout-graceful-shutdown 1

Open http://localhost:8000 in two tabs. The four processes share the file tasks.db, or the one that TASKS_DB names.
Streams of events have no end of their own, so uvicorn is told how long to wait for them when it stops.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Literal

from fastapi import Depends, FastAPI, Request, Response
from fastapi.responses import FileResponse, JSONResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel

import flatwater

TASKS = """
CREATE TABLE tasks (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL UNIQUE CHECK (title <> ''),
    state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'done'))
) STRICT
"""
OPEN = "SELECT id, title, state FROM tasks WHERE state = 'open' ORDER BY id"


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, flatwater.Database]]:
    """Opens the database when a process of the service starts, and closes it when it stops."""
    path = os.environ.get("TASKS_DB", "tasks.db")
    async with flatwater.connect(path, migrations=[("001_tasks", TASKS)], timeout=5) as db:
        yield {"db": db}


async def database(request: Request) -> flatwater.Database:
    db: flatwater.Database = request.state.db
    return db


Db = Annotated[flatwater.Database, Depends(database)]
app = FastAPI(lifespan=lifespan)


class New(BaseModel):
    title: str


class Change(BaseModel):
    state: Literal["open", "done"]


class Task(BaseModel):
    id: int
    title: str
    state: Literal["open", "done"]


@app.get("/", response_class=FileResponse)
async def page() -> Path:
    return Path(__file__).with_name("page.html")


@app.get("/tasks")
async def tasks(db: Db) -> Response:
    return Response(await db.query_json(OPEN), media_type="application/json")


@app.post("/tasks", status_code=201)
async def add(new: New, db: Db) -> Task:
    sql = "INSERT INTO tasks (title) VALUES (?) RETURNING id, title, state"
    return await db.query_one(sql, (new.title,), into=Task)


@app.patch("/tasks/{id}")
async def change(id: int, change: Change, db: Db) -> Task:
    sql = "UPDATE tasks SET state = ? WHERE id = ? RETURNING id, title, state"
    return await db.query_one(sql, (change.state, id), into=Task)


@app.get("/events", response_class=EventSourceResponse)
async def events(db: Db) -> AsyncIterator[ServerSentEvent]:
    """The open tasks, now and whenever they have changed, by this process or another one. Clients share the query."""
    async with db.live(OPEN) as results:
        async for open_tasks in results:
            yield ServerSentEvent(event="tasks", data=[dict(task) for task in open_tasks])


@app.exception_handler(flatwater.IntegrityError)
async def refused(_: Request, error: flatwater.IntegrityError) -> JSONResponse:
    if error.sqlite_errorname == "SQLITE_CONSTRAINT_UNIQUE":
        return JSONResponse({"detail": "there is a task of this title"}, 409)
    return JSONResponse({"detail": "a task needs a title"}, 422)


@app.exception_handler(flatwater.RowNotFound)
async def missing(_: Request, __: flatwater.RowNotFound) -> JSONResponse:
    return JSONResponse({"detail": "there is no such task"}, 404)


@app.exception_handler(flatwater.OperationalError)
async def failed(_: Request, error: flatwater.OperationalError) -> JSONResponse:
    """Another process may have held the file's lock for too long. Then the client may try again."""
    if not error.retryable:
        raise error
    return JSONResponse({"detail": "try again"}, 503, {"Retry-After": "1"})
