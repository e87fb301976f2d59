"""A notebook with Django's models on Flatwater: migrations, transactions, expressions, threads that write at once, and
an asynchronous view that uses Django's queries and the package's own calls.

pip install "./python[django]"
python examples/python/notebook/notebook.py [notes.db]
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

import django
from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.http import JsonResponse
from django.test import AsyncClient
from django.urls import path

from flatwater.django import connect

THREADS, TIMES = 8, 25


def set_up(file):
    settings.configure(
        INSTALLED_APPS=["notes"],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        USE_TZ=True,
        ROOT_URLCONF=__name__,
        ALLOWED_HOSTS=["testserver"],
        DATABASES={
            "default": {
                "ENGINE": "flatwater.django",
                "NAME": file,
                # A transaction takes the writer when it begins, and so it never fails because another has written.
                "OPTIONS": {"transaction_mode": "IMMEDIATE"},
            }
        },
    )
    django.setup()
    call_command("migrate", verbosity=0)


def write(Note, Tag):
    with transaction.atomic():
        home = Tag.objects.create(name="home")
        year = [datetime(2025 + at % 2, 1, 1 + at, tzinfo=timezone.utc) for at in range(4)]
        titles = ["buy tea", "buy milk", "rest", "buy nothing"]
        notes = Note.objects.bulk_create(Note(title=title, created=at) for title, at in zip(titles, year, strict=True))
        home.notes.set(notes[:3])
        transaction.on_commit(lambda: print("committed:", Note.objects.count(), "notes"))
        try:
            with transaction.atomic():
                Note.objects.create(title="is rolled back", created=year[0])
                Tag.objects.create(name="home")
        except IntegrityError as error:
            print(f"not stored: {error}")


def star(note):
    """Gives a note its stars one after another: reads it, and writes it back."""
    try:
        for _ in range(TIMES):
            with transaction.atomic():
                found = type(note).objects.get(pk=note.pk)
                found.stars += 1
                found.save()
    finally:
        connection.close()


async def starred(request):
    """The notes with stars by Django's queries, which run in a thread, and their sum by a call of this loop."""
    from notes.models import Note

    titles = [note.title async for note in Note.objects.filter(stars__gt=0)]
    async with connect() as db:
        stars = await db.query_value("SELECT sum(stars) FROM notes_note")
    return JsonResponse({"titles": titles, "stars": stars})


urlpatterns = [path("starred", starred)]


def main(file):
    set_up(file)
    from notes.models import Note, Tag

    write(Note, Tag)
    found = Note.objects.filter(title__iregex=r"^BUY (tea|milk)$").order_by("title")
    print("to buy:", ", ".join(note.title for note in found))
    print("of 2026:", Note.objects.filter(created__year=2026).count())
    print("at home:", Note.objects.filter(tags__name="home").count())
    note = found[0]
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(star, [note] * THREADS))
    Note.objects.filter(pk=note.pk).update(stars=F("stars") + 1)
    note.refresh_from_db()
    print("stars:", note.stars)
    print("a view:", async_to_sync(AsyncClient().get)("/starred").json())
    connection.close()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "notes.db")
