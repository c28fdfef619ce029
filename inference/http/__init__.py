"""Between a socket and the scheduler: connections, routes, streams, probes, metrics, and the life of a server."""
