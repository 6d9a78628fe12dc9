"""What goes out to other machines, for all our clients: HTTP requests and TLS contexts.

Comes in: options and requests. Goes out: whole answers, contexts, and errors that name the address.
"""
