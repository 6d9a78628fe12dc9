"""Wraps data keys with a public key, and unwraps them with the private one (pure but for chance).

The algorithm depends on the kind of key:

    RSA     RSA-OAEP with SHA-1 for hash and MGF1, empty label; all Pulsar clients support it.
    EC      ECIES as Bouncy Castle's `ECIES` makes it with `IESParameterSpec(null, null, 128)`;
            Java's client names it ECDSA. The C++ based clients don't support it.

ECIES, big-endian; n is the length of the data key, Z the ECDH secret (x, as long as the field):

    offset      width   meaning
    0           1       4: an uncompressed point follows
    1           2 * f   the ephemeral public key's x and y (f: bytes of the curve's field)
    1 + 2 f     n       data key XOR K1
    1 + 2 f+n   20      HMAC-SHA1 with K2 over the n bytes before and 8 zero bytes

    K2 (16 bytes) | K1 (n bytes) = KDF2-SHA1 of the first 1 + 2 f bytes | Z

A wrapped key that is torn or meant for another key fails by padding or by HMAC, never silently.
`cryptography` is imported when the first key is used.

Source: MessageCryptoBc in Pulsar's Java client; ISO 18033-2 (KDF2), IEEE 1363a (ECIES).
"""

from __future__ import annotations

import hashlib
import hmac
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pulsar_py.common.errors import CryptoError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

    PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
    PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

__all__ = ["load_private_key", "load_public_key", "unwrap_key", "wrap_key"]

_MAC_KEY_BYTES: Final = 16
_MAC_BYTES: Final = 20
_ENCODING_LENGTH: Final = bytes(8)  # the length in bits of ECIES's second parameter, which is empty


def load_public_key(pem: bytes, key_name: str) -> PublicKey:
    """The RSA or EC key in `pem`.

    Raises:
        CryptoError: It is not such a key; the message names it.
    """
    from cryptography.exceptions import InternalError, UnsupportedAlgorithm  # noqa: PLC0415 - 60 ms
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - at first use
    from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: PLC0415 - at first use

    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm, InternalError) as error:
        raise CryptoError(f"key {key_name}: not a public key in PEM: {error}") from error
    if not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
        raise CryptoError(f"key {key_name}: expected an RSA or EC key, got {type(key).__name__}")
    return key


def load_private_key(pem: bytes, key_name: str) -> PrivateKey:
    """The RSA or EC key in `pem`, which has no passphrase; EC parameters before it are skipped.

    Raises:
        CryptoError: It is not such a key; the message has its name and never the key itself.
    """
    from cryptography.exceptions import InternalError, UnsupportedAlgorithm  # noqa: PLC0415 - 60 ms
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - at first use
    from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: PLC0415 - at first use

    parameters_end = b"-----END EC PARAMETERS-----"
    try:
        key = serialization.load_pem_private_key(pem.partition(parameters_end)[2] or pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm, InternalError) as error:
        # `cryptography` raises TypeError for a key with a passphrase.
        raise CryptoError(f"key {key_name}: not a private key in PEM: {error}") from error
    if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
        raise CryptoError(f"key {key_name}: expected an RSA or EC key, got {type(key).__name__}")
    return key


def wrap_key(public_key: PublicKey, data_key: bytes) -> bytes:
    """The data key, encrypted so that only the private key decrypts it; different each time.

    Raises:
        CryptoError: The RSA key is too small for the data key.
    """
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415 - at first use

    if not isinstance(public_key, rsa.RSAPublicKey):
        return _wrap_ecies(public_key, data_key)
    try:
        return public_key.encrypt(data_key, _oaep())
    except ValueError as error:
        raise CryptoError(f"RSA key of {public_key.key_size} bits: {error}") from error


def unwrap_key(private_key: PrivateKey, wrapped: bytes) -> bytes:
    """The data key that was wrapped with the public half of `private_key`.

    Raises:
        CryptoError: It was wrapped with another key, or is damaged.
    """
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415 - at first use

    if not isinstance(private_key, rsa.RSAPrivateKey):
        return _unwrap_ecies(private_key, wrapped)
    try:
        return private_key.decrypt(wrapped, _oaep())
    except ValueError:
        raise CryptoError("the data key was wrapped with another RSA key, or damaged") from None


@cache
def _oaep() -> padding.OAEP:
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - at first use
    from cryptography.hazmat.primitives.asymmetric import padding  # noqa: PLC0415 - at first use

    sha1 = hashes.SHA1()  # noqa: S303 - what the format says; OAEP does not rest on collisions
    return padding.OAEP(mgf=padding.MGF1(sha1), algorithm=sha1, label=None)


def _wrap_ecies(public_key: ec.EllipticCurvePublicKey, data_key: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - at first use

    ephemeral = ec.generate_private_key(public_key.curve)
    point = _point_bytes(ephemeral.public_key())
    secret = ephemeral.exchange(ec.ECDH(), public_key)
    mac_key, mask = _ecies_keys(point, secret, len(data_key))
    masked = _xor(data_key, mask)
    return point + masked + _ecies_mac(mac_key, masked)


def _unwrap_ecies(private_key: ec.EllipticCurvePrivateKey, wrapped: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - at first use

    point_length = 1 + 2 * ((private_key.curve.key_size + 7) // 8)
    point, masked, mac = (
        wrapped[:point_length],
        wrapped[point_length:-_MAC_BYTES],
        wrapped[-_MAC_BYTES:],
    )
    if len(wrapped) <= point_length + _MAC_BYTES:
        raise CryptoError(f"a wrapped data key of {len(wrapped)} bytes is cut off")
    try:
        ephemeral = ec.EllipticCurvePublicKey.from_encoded_point(private_key.curve, point)
        secret = private_key.exchange(ec.ECDH(), ephemeral)
    except ValueError:
        raise CryptoError("the data key was wrapped for another curve, or damaged") from None
    mac_key, mask = _ecies_keys(point, secret, len(masked))
    if not hmac.compare_digest(mac, _ecies_mac(mac_key, masked)):
        raise CryptoError("the data key was wrapped with another EC key, or damaged")
    return _xor(masked, mask)


def _point_bytes(public_key: ec.EllipticCurvePublicKey) -> bytes:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - at first use

    return public_key.public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )


def _ecies_keys(point: bytes, secret: bytes, length: int) -> tuple[bytes, bytes]:
    stream = _kdf2(point + secret, _MAC_KEY_BYTES + length)
    return stream[:_MAC_KEY_BYTES], stream[_MAC_KEY_BYTES:]


def _kdf2(secret: bytes, length: int) -> bytes:
    stream = b""
    counter = 1
    while len(stream) < length:
        stream += _sha1(secret + counter.to_bytes(4, "big")).digest()
        counter += 1
    return stream[:length]


def _sha1(data: bytes) -> Any:  # Any: hashlib's object has no public type
    return hashlib.sha1(data, usedforsecurity=False)


def _ecies_mac(mac_key: bytes, masked: bytes) -> bytes:
    return hmac.new(mac_key, masked + _ENCODING_LENGTH, "sha1").digest()


def _xor(data: bytes, mask: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(data, mask, strict=True))
