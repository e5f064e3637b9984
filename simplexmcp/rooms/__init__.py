"""Rooms: a chat room for several agents and people on one SQLite file.

Nothing here imports trio, the MCP SDK or the parser library: an agent's server and watcher start in a tenth of a
second. Only `view`, the page for people, does.
"""
