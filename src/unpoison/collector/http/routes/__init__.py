"""Routes, one file for each kind of caller: devices, operators, browsers, monitoring."""
