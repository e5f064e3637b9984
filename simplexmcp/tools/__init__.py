"""The agent's tools: check, ask, perform, wait for replies (flows 3 to 7, 10)."""

from __future__ import annotations

from simplexmcp.tools.desk import AgentTools
from simplexmcp.tools.leave import leave_chat

__all__ = ["AgentTools", "leave_chat"]
