"""AckReceipts: a group of durable acknowledgements is one buffer; a failed write, an error each."""

from pulsar_py.common.errors import PersistenceError, StorageError
from pulsar_py.server.handlers.ack_receipts import AckReceipts
from pulsar_py.wire import commands


class Connection:
    """Notes what is written, and how."""

    def __init__(self):
        self.written = []
        self.sent = []

    def write(self, buffers):
        self.written.append(buffers)

    def send(self, frame):
        self.sent.append(frame)


def test_a_group_is_one_buffer():
    connection = Connection()
    AckReceipts(connection, 7)([1, 2, 300], None)
    ((data,),) = connection.written
    assert data == b"".join(commands.ack_response(7, each) for each in (1, 2, 300))
    assert not connection.sent


def test_what_may_not_be_durable_is_told_each():
    connection = Connection()
    AckReceipts(connection, 7)([1, 2], StorageError("the disk is full"))
    text = "the acknowledgement may not be on disk: the disk is full"
    assert connection.sent == [
        commands.ack_response(7, each, code=PersistenceError.code, message=text) for each in (1, 2)
    ]
    assert not connection.written
