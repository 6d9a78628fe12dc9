"""Dispatchers: choose the consumer of each message and the time at which it is sent.

In: entries of an `EntrySource`, permits, acknowledgements and redeliveries of consumers. Out:
messages, handed to consumers, and positions to send again. It knows neither topics nor
subscriptions: `DispatchHost` and `DispatchConsumer` are the protocols that these implement.
"""
