"""One module per kind of server: its wire, actions, prompt and numbers."""
