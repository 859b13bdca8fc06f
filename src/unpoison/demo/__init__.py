"""`make demo`: what the library does, on one screen, and a collector that runs the protocol."""
