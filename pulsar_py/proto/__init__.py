"""The protocol's messages, generated from `proto/*.proto` by `make proto`; never edited.

They live in a descriptor pool of their own (`pool`). Third-party packages it may import: protobuf.
"""
