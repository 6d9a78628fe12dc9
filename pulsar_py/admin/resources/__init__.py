"""What the administration offers, one module a kind of thing; JSON keeps Pulsar's field names."""
