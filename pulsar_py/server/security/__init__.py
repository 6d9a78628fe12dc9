"""Who a client is and what it asks to do; enforced where commands and calls come in."""
