"""Places where untrusted code runs. The layer stands between the environments and the core."""
