"""One connection to each bookie in use, who is registered, and how each has answered.

Comes in: requests for one bookie, news of the registry. Goes out: frames, and answers to whoever
asked. Nothing here knows what a write quorum is.
"""
