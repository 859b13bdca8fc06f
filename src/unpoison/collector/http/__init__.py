"""HTTP: the routes of a collector, their bodies, and the checks that every request passes."""
