"""What topics need done from time to time, whoever asks: expiry, quotas, deleting what nobody uses.

In: loaded topics, from the broker's timers or an administrator's call. Out: changed cursors, topics
and subscriptions. Nothing else in `server` but the broker itself imports this.
"""
