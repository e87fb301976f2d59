"""A program on Tortoise ORM: rows that are created one by one and in bulk, nested transactions, filters, migrations."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tortoise import Tortoise, fields
from tortoise.connection import get_connection
from tortoise.exceptions import IntegrityError
from tortoise.migrations.api import migrate
from tortoise.models import Model
from tortoise.transactions import in_transaction


class Team(Model):
    id = fields.IntField(primary_key=True)
    name = fields.CharField(max_length=50, unique=True)


class Player(Model):
    id = fields.IntField(primary_key=True)
    name = fields.CharField(max_length=50)
    goals = fields.IntField(default=0)
    team: Any = fields.ForeignKeyField("models.Team", related_name="players")


def config(file: Path, **app: Any) -> dict[str, Any]:
    credentials = {"file_path": str(file), "install_regexp_functions": True}
    return {
        "connections": {"default": {"engine": "tortoise.backends.sqlite", "credentials": credentials}},
        "apps": {"models": {"models": [__name__], "default_connection": "default", **app}},
    }


async def test_a_program(tmp_path: Path) -> None:
    await Tortoise.init(config=config(tmp_path / "test.db"))
    try:
        await Tortoise.generate_schemas()
        await program()
    finally:
        await Tortoise.close_connections()


async def program() -> None:
    red = await Team.create(name="red")
    blue, is_new = await Team.get_or_create(name="blue")
    assert is_new and (red.id, blue.id) == (1, 2)
    with pytest.raises(IntegrityError):
        await Team.create(name="red")
    with pytest.raises(IntegrityError):
        await Player.create(name="nobody", team_id=99)

    await Player.bulk_create([Player(name=f"player {n}", goals=n, team=red if n % 2 else blue) for n in range(100)])
    assert await Player.filter(team__name="red").count() == 50
    assert await Player.filter(goals__gte=90).update(goals=0) == 10
    top = await Player.filter(goals__gt=0).order_by("-goals").limit(2).values_list("name", "goals")
    assert top == [("player 89", 89), ("player 88", 88)]
    assert await Player.filter(name__posix_regex="^player [12]$").count() == 2
    assert await Player.filter(name__iposix_regex="PLAYER 1$").count() == 1

    async with in_transaction():
        await Team.create(name="green")
        with pytest.raises(ZeroDivisionError):
            async with in_transaction():
                await Player.all().delete()
                assert await Player.all().count() == 0
                raise ZeroDivisionError
        async with in_transaction():
            await Player.filter(goals=0).delete()
    assert await Player.all().count() == 89
    with pytest.raises(ZeroDivisionError):
        async with in_transaction():
            await Team.all().delete()
            raise ZeroDivisionError
    assert sorted(await Team.all().values_list("name", flat=True)) == ["blue", "green", "red"]
    loaded = await Team.get(name="red").prefetch_related("players")
    assert len(loaded.players) == len([player for player in loaded.players if player.goals % 2])


FIRST = """
from tortoise import fields, migrations
from tortoise.migrations import operations as ops

class Migration(migrations.Migration):
    operations = [
        ops.CreateModel("Team", [
            ("id", fields.IntField(primary_key=True)), ("name", fields.CharField(max_length=50, unique=True)),
        ], options={"table": "team", "app": "models"}),
        ops.CreateModel("Player", [
            ("id", fields.IntField(primary_key=True)),
        ], options={"table": "player", "app": "models"}),
    ]
"""
SECOND = """
from tortoise import fields, migrations
from tortoise.migrations import operations as ops

class Migration(migrations.Migration):
    dependencies = [("models", "0001_first")]
    operations = [ops.AddField("Team", "city", fields.CharField(max_length=50, default="none"))]
"""


async def test_migrations_are_applied_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "applied_migrations"
    folder.mkdir()
    for name, text in (("__init__", ""), ("0001_first", FIRST), ("0002_second", SECOND)):
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "applied_migrations", raising=False)
    for _ in range(2):
        try:
            await migrate(config=config(tmp_path / "test.db", migrations="applied_migrations"))
            rows = await get_connection("default").execute_query_dict("PRAGMA table_info(team)")
        finally:
            await Tortoise.close_connections()
        assert [row["name"] for row in rows] == ["id", "name", "city"]
