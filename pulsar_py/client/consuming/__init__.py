"""The consumer of one topic: subscribes, resubscribes, acknowledges, and calls listeners.

In: the options of `Client.subscribe`, and the application's calls. Out: messages from `receiving`;
acknowledgements and requests for redelivery to `acknowledging`; dead letters to producers, which a
function that it is given creates.

Third-party packages it may import: none.
"""
