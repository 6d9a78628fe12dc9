"""Which consumer gets which message, and when."""
