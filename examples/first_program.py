"""Publish one message and receive it, with the official client and a broker that runs already.

.venv/bin/python examples/first_program.py [URL]
"""

import sys

import pulsar

url = sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"
client = pulsar.Client(url)
consumer = client.subscribe("greetings", "reader")
producer = client.create_producer("greetings")
producer.send(b"hello")

message = consumer.receive(timeout_millis=10_000)
print(message.data().decode())
consumer.acknowledge(message)
client.close()
