"""turngym/TextWorld-v0: games of Microsoft's TextWorld (extra `textworld`)."""
