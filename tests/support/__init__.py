"""Shared by tests: servers, browsers, databases, clients and fakes."""
