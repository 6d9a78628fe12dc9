"""Subscriptions of topics and their consumers.

In: subscribe requests, FLOW, acknowledgements, redelivery and seek, as method calls. Out: messages
to connections, by a dispatcher of `dispatch`, and acknowledged positions to a managed cursor. What
a subscription needs of its topic is the protocol `SubscriptionOwner`.
"""
