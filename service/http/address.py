"""The address of the service, for people."""


def address_of(host: str, port: int) -> str:
    """The URL to open in a browser on this machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
