"""A format of another package."""


class LinesWriter:
    """A line for each figure."""

    name, title = "lines", "Lines"
    ending, media_type = ".lines", "text/plain"

    def write(self, cube, options=None):
        """The file's content."""
        return "".join(f"{value}\n" for value in cube.values.reshape(-1)).encode()
