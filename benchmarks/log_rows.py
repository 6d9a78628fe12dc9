"""Rows as services log them: JSON of one line, 1 KB, of which LZ4 and Snappy make half.

Random bytes can't be compressed, which favours readers that do not decompress; real topics hold
texts.
"""

from __future__ import annotations

import json
from random import Random

SEED = 7
WORDS_COUNT = 3000
LETTERS = "etaoinshrdlucm"
LEVELS = ("INFO", "INFO", "INFO", "WARN", "ERROR")
SERVICES = ("basket", "checkout", "login", "search", "stock")
STATUSES = (200, 200, 200, 201, 404, 500)
AGENTS = (
    "curl/8.5.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Gecko/20100101 Firefox/131.0",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/129.0 Safari/537.36",
)


def log_rows(count: int, size_bytes: int) -> list[bytes]:
    """So many rows of that size, the same ones each time; at least 400 bytes."""
    chance = Random(SEED)
    words = ["".join(chance.choices(LETTERS, k=chance.randint(2, 9))) for _ in range(WORDS_COUNT)]
    # Some words are frequent, as in any language.
    weights = [1 / rank for rank in range(3, WORDS_COUNT + 3)]
    rows = []
    for _ in range(count):
        fields = {
            "time": f"2026-11-{chance.randint(1, 28):02}T12:00:{chance.uniform(10, 59):.3f}Z",
            "level": chance.choice(LEVELS),
            "host": f"web-{chance.randint(1, 40)}",
            "service": chance.choice(SERVICES),
            "trace": f"{chance.getrandbits(64):016x}",
            "path": f"/api/v1/{chance.choice(words)}/{chance.randint(1, 1_000_000)}",
            "status": chance.choice(STATUSES),
            "millis": chance.randint(1, 900),
            "user": chance.randint(1, 10_000_000),
            "agent": chance.choice(AGENTS),
            "message": "",
        }
        begin = json.dumps(fields)[: -len('"}')]
        text = " ".join(chance.choices(words, weights, k=size_bytes // 3))
        rows.append((begin + text)[: size_bytes - len('"}')].encode() + b'"}')
    return rows
