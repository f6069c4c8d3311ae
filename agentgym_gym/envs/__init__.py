"""One module per kind of server: its wire, its actions, its prompt, its numbers."""
