"""`simplexmcp bridge`: MCP over stdin and stdout for clients without HTTP, passed on to the server of one agent.

| Module | What it is about |
|---|---|
| `stdio` | lines on stdin and stdout |
| `http` | one POST to a port of this computer; the only place that knows h11 |
| `events` | messages out of an event stream |
| `proxy` | which line becomes which request, and what becomes of the answer |
| `running` | where the server is, and the command itself |
"""
