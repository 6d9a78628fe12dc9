"""The client without await: for scripts, workers and frameworks that block.

.venv/bin/python examples/client/synchronous.py [URL]
"""

import sys

from pulsar_py import blocking


def main(url: str) -> None:
    """A worker that ends when nothing came for a while."""
    with blocking.Client(url) as client:
        consumer = client.subscribe("letters", "postman")
        producer = client.create_producer("letters", block_if_queue_full=True)
        for number in range(1000):
            producer.send_nowait(b"letter %d" % number)
        last = producer.send(b"the last one")
        print("stored up to entry", last.entry_id)
        count = 0
        try:
            while True:
                message = consumer.receive(timeout_millis=300)
                count += 1
                consumer.acknowledge(message)
        except blocking.ClientTimeoutError:
            print(count, "letters")
        try:
            with blocking.timeout(0.1):
                consumer.receive()
        except TimeoutError:
            print("no more")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650")
