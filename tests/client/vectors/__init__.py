"""Test vectors that the Python device and the browser's client share."""
