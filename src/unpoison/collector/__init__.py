"""The collector: a service that runs the protocol between a collector and devices.

It needs the extra `collector`.
"""
