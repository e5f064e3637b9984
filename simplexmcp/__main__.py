"""`python -m simplexmcp` is the `simplexmcp` command."""

from simplexmcp.cli import main

main()
