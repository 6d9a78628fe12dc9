"""Dispatch: chooses which consumer gets which message, and when.

In: entries of an `EntrySource`, permits, acknowledgements and redeliveries of consumers. Out:
messages, handed to consumers, and positions to send again. It knows neither topics nor
subscriptions: `DispatchHost` and `DispatchConsumer` are the protocols that these implement.
"""
