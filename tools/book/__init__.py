"""The course as a book: `make book` builds its lessons, pages and docstrings into _build/book/html, offline."""
