"""Asks a service, over HTTP or in this process; imports `core`, and `local` alone the service.

From the bottom up: `retries` says when to ask again; `faq` is a file of `semblance choose --faq`; `calls` and
`requests` make the requests and read the answers, without I/O; `local` runs the service in this process; `clients` has
both clients.
"""
