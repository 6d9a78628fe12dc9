"""Credentials, and end-to-end encryption of payloads.

In: what the application chose (an `Authentication`, a `CryptoKeyReader`) and bytes. Out:
credentials for CONNECT and HTTP requests; payloads encrypted, or decrypted with their
`EncryptionContext`.

Third-party packages it may import: cryptography.
"""
