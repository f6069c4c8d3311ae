"""One module per kind of server: its wire protocol, actions, prompt and limits."""
