"""Values and memory that all rooms of the engine share: settings, ledgers, write cache, manifest.

Nothing here opens a file but the manifest's reader and writer.
"""
