"""HTTP/1.1: how a call reaches a server, in a thread or in an event loop. Private."""
