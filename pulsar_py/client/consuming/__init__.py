"""The consumer of one topic: subscribed, lost and subscribed again, settled, seen by listeners.

In: the options of `Client.subscribe`, and the application's calls. Out: messages from `receiving`;
acknowledgements and redeliveries to `acknowledging`; dead letters to producers that it is given a
way to make.

Third-party packages it may import: none.
"""
