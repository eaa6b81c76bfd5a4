"""turngym/Rooms-v0: a text world in pure Python."""
