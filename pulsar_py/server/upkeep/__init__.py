"""Periodic work on topics: expiry, backlog quotas, unused topics and subscriptions.

In: loaded topics, from the broker's timers or an administrator's call. Out: changed cursors, topics
and subscriptions. Nothing else in `server` but the broker itself imports this.
"""
