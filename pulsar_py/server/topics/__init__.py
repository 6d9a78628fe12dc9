"""Topics, their producers and subscriptions."""
