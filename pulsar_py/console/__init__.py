"""The console: pages for people, served by the broker on its HTTP port.

In: requests below `/console` (the pages) and `/admin/console` (what they ask for, besides the
REST API of `admin`). Out: files of this package as they are, and JSON whose size is bounded,
whatever a topic holds. Nothing of it is imported before its first request.

    service                     all routes, as an application of their own
    assets                      the files of the pages, and the headers that keep them apart
    callers                     who asks, and what he may do
    live_figures                rates and totals of the broker, measured while somebody looks
    listings                    tenants, namespaces and topics: searched and paged here
    topic_pages                 one topic, and one subscription with its consumers
    hole_pictures               which entries of a backlog are acknowledged, in cells
    previews                    what skip, reset and clear would do
    policy_origins              each policy with its value, its origin and its default
    setting_lists               the broker's settings
    sending                     a message for a test; dead letters back to their topic

`assets/` has HTML, CSS and ES modules, which need no build. What they show of payloads, names and
properties is text, never HTML.

Third-party packages it may import: msgspec.
"""
