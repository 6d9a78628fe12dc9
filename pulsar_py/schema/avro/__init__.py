"""Avro: definitions as trees and as types of values, and the binary form.

In: definitions of users and brokers, payloads. Out: types of `values`, bytes, and which field of
two definitions does not go together.

Third-party packages it may import: fastavro, when a record has to be coded.
"""
