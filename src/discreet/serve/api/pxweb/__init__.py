"""PxWebApi 2: the protocol of statistical offices, so that their clients work unmodified.

Every data set is a table; its variables can all be left out ("eliminated"), which gives their
total. Levels of a hierarchy are code lists. What is published, counts or weighted counts, is the
variable `ContentsCode`.
"""

from discreet.serve.api.pxweb import data, listing

routers = (listing.router, data.router)
__all__ = ["routers"]
