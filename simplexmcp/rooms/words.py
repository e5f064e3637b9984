"""What a persona is called: the parts of its ID, and the word that its owner resumes it with."""

from __future__ import annotations

import re
import secrets

__all__ = ["draw_word", "slug"]

_ADJECTIVES = (
    "amber brisk calm dapper early fabled gentle hazel ivory jolly keen lucid mellow nimble olive plucky quiet rustic "
    "silver tidy upbeat vivid wistful young zesty bold"
)
_NOUNS = (
    "anchor badger canyon dune ember falcon garden harbor island juniper kettle lantern meadow nutmeg orchard pebble "
    "quarry river saddle thicket umbrella valley willow yarrow zephyr bridge"
)
_NUMBERS = 65_536
_OTHER = re.compile("[^a-z0-9]+")


def slug(text: str) -> str:
    """Lower case, each run of other characters than a-z and 0-9 one hyphen, none at the ends."""
    return _OTHER.sub("-", text.lower()).strip("-")


def draw_word() -> str:
    """A new resume word: adjective, noun and a number up to 65535, about 44 million of them."""
    return f"{secrets.choice(_ADJECTIVES.split())}-{secrets.choice(_NOUNS.split())}-{secrets.randbelow(_NUMBERS)}"
