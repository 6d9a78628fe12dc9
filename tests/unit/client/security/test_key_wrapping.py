"""Wrapped data keys; the bytes marked as Java's were recorded from Pulsar 4.2.4's MessageCryptoBc."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from pulsar_py.client.security.key_wrapping import (
    load_private_key,
    load_public_key,
    unwrap_key,
    wrap_key,
)
from pulsar_py.common.errors import CryptoError

DATA_KEY = bytes(range(32))

JAVA_EC_PRIVATE_KEY = b"""\
-----BEGIN EC PARAMETERS-----
BggqhkjOPQMBBw==
-----END EC PARAMETERS-----
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEING0H94yZ3Y70yRnTPY6qboLCJS+5jmf4avlrDvqwJs5oAoGCCqGSM49
AwEHoUQDQgAEvxSN6drXhWLf/f3r3oDhq31xKNzPkSsjQ4FDJ+pqZ3rbOAB3v3p9
bjEgO3Yg/r0SGUODADZXxZc7qkhexJ68yQ==
-----END EC PRIVATE KEY-----
"""
JAVA_WRAPPED = bytes.fromhex(
    "046456e0cff975bea56839456673e06b5a4cc9600811d02808225230fa16b597b21c40cc36b84213063c3a8f6b66"
    "de69dc94b1d5685940f26b906cfdf69e17100426d0ef9c9b41873b35d01fe7d4c628399208db63dc668f555e5a39"
    "471a008c64a93e8eea6cfb81204cf445925f0a27ac9cba09d1"
)
JAVA_DATA_KEY = bytes.fromhex("f0b52b68938d1b46685852edb3f9553aca9fa3742c3baf4e16ad2f50dea7a94b")

RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())


def private_pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, form: str = "PKCS8") -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        getattr(serialization.PrivateFormat, form),
        serialization.NoEncryption(),
    )


def public_pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


@pytest.mark.parametrize(
    "key",
    [
        RSA_KEY,
        EC_KEY,
        ec.generate_private_key(ec.SECP521R1()),
        ec.generate_private_key(ec.SECP256K1()),
    ],
    ids=["rsa", "p256", "p521", "k256"],
)
@pytest.mark.parametrize("form", ["PKCS8", "TraditionalOpenSSL"])
def test_a_data_key_comes_back(
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, form: str
) -> None:
    wrapped = wrap_key(load_public_key(public_pem(key), "mine"), DATA_KEY)

    assert DATA_KEY not in wrapped
    assert unwrap_key(load_private_key(private_pem(key, form), "mine"), wrapped) == DATA_KEY


def test_what_java_wrapped_for_an_ec_key_is_read() -> None:
    key = load_private_key(JAVA_EC_PRIVATE_KEY, "mine")

    assert unwrap_key(key, JAVA_WRAPPED) == JAVA_DATA_KEY


def test_wrapping_differs_each_time() -> None:
    for key in (RSA_KEY, EC_KEY):
        assert wrap_key(key.public_key(), DATA_KEY) != wrap_key(key.public_key(), DATA_KEY)


@pytest.mark.parametrize("key", [RSA_KEY, EC_KEY], ids=["rsa", "ec"])
def test_a_damaged_key_is_noticed(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> None:
    wrapped = wrap_key(key.public_key(), DATA_KEY)

    for index in (0, 10, len(wrapped) - 30, len(wrapped) - 1):
        damaged = bytearray(wrapped)
        damaged[index] ^= 1
        with pytest.raises(CryptoError, match="damaged"):
            unwrap_key(key, bytes(damaged))


@pytest.mark.parametrize("length", [0, 1, 64, 85])
def test_a_torn_key_is_noticed(length: int) -> None:
    with pytest.raises(CryptoError, match=f"{length} bytes"):
        unwrap_key(EC_KEY, wrap_key(EC_KEY.public_key(), DATA_KEY)[:length])


def test_another_key_does_not_fit() -> None:
    other_rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    with pytest.raises(CryptoError, match="another RSA key"):
        unwrap_key(other_rsa, wrap_key(RSA_KEY.public_key(), DATA_KEY))
    other_ec = ec.generate_private_key(ec.SECP256R1())
    with pytest.raises(CryptoError, match="another EC key"):
        unwrap_key(other_ec, wrap_key(EC_KEY.public_key(), DATA_KEY))


def test_an_rsa_key_that_is_too_small_is_refused() -> None:
    small = rsa.generate_private_key(public_exponent=65537, key_size=1024)

    with pytest.raises(CryptoError, match="1024 bits"):
        wrap_key(small.public_key(), bytes(128))


def test_keys_that_are_none_are_named() -> None:
    for load in (load_public_key, load_private_key):
        with pytest.raises(CryptoError, match="key mine: not a"):
            load(b"nonsense", "mine")
    locked = RSA_KEY.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    with pytest.raises(CryptoError, match="key mine: not a private key"):
        load_private_key(locked, "mine")


def test_keys_of_other_kinds_are_refused() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    with pytest.raises(CryptoError, match="key mine: expected an RSA or EC key, got Ed25519"):
        load_private_key(private_pem(key), "mine")  # type: ignore[arg-type]
    with pytest.raises(CryptoError, match="key mine: expected an RSA or EC key, got Ed25519"):
        load_public_key(public_pem(key), "mine")  # type: ignore[arg-type]
