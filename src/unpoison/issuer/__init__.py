"""A small issuer of Privacy Pass tokens, for tests, demonstrations and small deployments."""
