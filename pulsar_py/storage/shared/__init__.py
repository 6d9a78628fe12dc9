"""Values and memory that all rooms of the engine share: settings, ledgers, write cache, manifest.

In: entries that were confirmed, numbers of files. Out: sorted runs to flush, the manifest of all
files, what a backup has to hold. Nothing here opens a file but the manifest's reader and writer.
"""
