"""HTTP: connections, limits, keys, and the checks that come before any route."""
