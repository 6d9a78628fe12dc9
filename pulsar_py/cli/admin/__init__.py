"""`pulsar-py admin`: the commands of `pulsar-admin`, over the typed calls of `admin_client`.

In: words and options of a command line. Out: REST calls, and their answers as text or JSON.

`words` says what a word is; `tenants`, `clusters`, `namespaces`, `topics` and so on declare them.
`command` makes commands of them, `session` sends their calls, `output` prints the answers.
Nothing here imports asyncio or a part of the broker: a call is over before they would be.

Third-party packages it may import: click.
"""
