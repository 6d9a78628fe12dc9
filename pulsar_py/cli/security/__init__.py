"""The commands `pulsar-py secure` and `pulsar-py tokens`, and a broker's TLS towards its stores.

In: options of the commands, settings of a broker. Out: files of certificates, keys, tokens and
settings, tokens on standard output, and TLS and credentials for ZooKeeper and bookies.

Third-party packages it may import: click, cryptography, PyJWT.
"""
