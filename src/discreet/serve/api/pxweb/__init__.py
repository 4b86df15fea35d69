"""The protocols of PxWeb, 2 and 1, so that clients of statistical offices work unmodified.

Every data set is a table; its variables can all be left out ("eliminated"), which gives their
total. Levels of a hierarchy are code lists. What is published, counts or weighted counts, is the
variable `ContentsCode`.
"""

from discreet.serve.api.pxweb import data, first, listing

routers = (listing.router, data.router)
older = first.router
__all__ = ["older", "routers"]
