"""Show credentials that expire: a function is asked for a fresh token each time.

.venv/bin/python examples/client/credentials.py [URL]
"""

import asyncio
import sys

import pulsar_py


async def main(url: str) -> None:
    """The supplier is called for each connection, and whenever the broker asks again."""

    async def fresh_token() -> str:
        return "a token from wherever you keep them"

    authentication = pulsar_py.AuthenticationToken(fresh_token)
    async with pulsar_py.Client(url, authentication) as client:
        print(await client.get_topic_partitions("anything"))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
