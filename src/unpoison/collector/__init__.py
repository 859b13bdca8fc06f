"""The collector: an HTTP service that enrols devices, counts their reports and estimates.

Its parts import one another in one direction only:

    server ─▶ http ─▶ service ─▶ campaigns ─▶ storage ─▶ faults, clock, credentials

It needs the extra `collector`.
"""
