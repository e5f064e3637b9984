"""An agent's presence in SimpleX, with the last word on its owner's phone."""

__version__ = "0.1.0"
