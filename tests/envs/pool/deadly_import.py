"""Ends any process but pytest's that imports it."""

import os

os._exit(5)
