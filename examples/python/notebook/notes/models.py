"""Notes with tags."""

from django.db import models


class Tag(models.Model):
    name = models.CharField(max_length=40, unique=True)


class Note(models.Model):
    title = models.CharField(max_length=100)
    created = models.DateTimeField()
    stars = models.PositiveIntegerField(default=0)
    tags = models.ManyToManyField(Tag, related_name="notes")
