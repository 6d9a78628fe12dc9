"""The broker's settings, declared: name, type, default, bounds and text of each, by subject.

In: values of settings as text or typed, which `declaring` checks. Out: classes of settings, of
which `BrokerConfig` (`server/config.py`) is made, and declarations, of which documents are made.
"""
