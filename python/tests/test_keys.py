"""Keys in a build that cannot encrypt: what is said of them. What they do is tested with the wheel that can."""

import traceback
from pathlib import Path

import pytest

import flatwater
from flatwater import blocking

KEY = "hunter2"


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error)


def test_a_key_says_which_package_to_install(tmp_path: Path) -> None:
    for key in (KEY, bytes(32)):
        with pytest.raises(flatwater.ProgrammingError, match="built without encryption") as raised:
            blocking.connect(tmp_path / "a.db", key=key)
        assert "flatwater-sqlcipher" in str(raised.value)
        assert KEY not in shown(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_an_export_and_a_new_key_say_it_too(tmp_path: Path) -> None:
    with blocking.connect(tmp_path / "a.db") as db:
        for call in (
            lambda: db.export(tmp_path / "b.db", key=KEY),
            lambda: db.export(tmp_path / "b.db", key=None),
            lambda: db.rekey(KEY),
            lambda: db.has_key(KEY),
        ):
            with pytest.raises(flatwater.ProgrammingError, match="flatwater-sqlcipher") as raised:
                call()
            assert KEY not in shown(raised.value)
    assert not (tmp_path / "b.db").exists()


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (7, TypeError),
        (b"hunter2", ValueError),
        (b"", ValueError),
        (["hunter2"], TypeError),
        ("hunter2\ud800", ValueError),
    ],
)
def test_what_is_no_key_is_refused_and_not_shown(tmp_path: Path, key: object, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        blocking.connect(tmp_path / "a.db", key=key)  # type: ignore[arg-type]
    text = "".join(traceback.format_exception_only(raised.value))
    assert KEY not in text, text


def test_a_file_that_looks_encrypted_is_said_to_be_that(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    file.write_bytes(bytes(range(128, 256)) * 64)
    with pytest.raises(flatwater.OperationalError, match="is encrypted, or is no SQLite database") as raised:
        blocking.connect(file)
    assert raised.value.kind == "key"
    assert "the option `key`" in str(raised.value) and "flatwater-sqlcipher" in str(raised.value)
