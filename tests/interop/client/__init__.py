"""Our client beside the official one."""
