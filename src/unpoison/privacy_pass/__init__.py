"""Privacy Pass tokens (RFC 9577, 9578) with blind RSA signatures (RFC 9474).

An issuer signs a message that it cannot read; the signature is a token that shows that some account
asked for it, and not which.
"""

from unpoison.privacy_pass.blind_rsa import RsaPrivateKey, RsaPublicKey
from unpoison.privacy_pass.challenge import TokenChallenge, campaign_challenge
from unpoison.privacy_pass.encoding import from_base64url, to_base64url
from unpoison.privacy_pass.issuance import PendingToken, TokenRequest, blind_signature
from unpoison.privacy_pass.keys import IssuerKey, load_private_key, new_private_key
from unpoison.privacy_pass.token import Token

__all__ = [
    "IssuerKey",
    "PendingToken",
    "RsaPrivateKey",
    "RsaPublicKey",
    "Token",
    "TokenChallenge",
    "TokenRequest",
    "blind_signature",
    "campaign_challenge",
    "from_base64url",
    "load_private_key",
    "new_private_key",
    "to_base64url",
]
