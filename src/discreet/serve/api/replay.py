"""A saved query made into a table again: by a site that answers, or by a site's file."""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from discreet.errors import DataError, ParameterError
from discreet.release.formats.write import Writer
from discreet.serve.api.saved import SavedQuery
from discreet.serve.api.told import Teller, written_cube
from discreet.serve.site.site import Site
from discreet.serve.web.texts import texts

_SECONDS = 120


def from_url(saved: SavedQuery, url: str, writer: Writer, token: str = "") -> bytes:
    """The table in a format, as a site that answers gives it.

    Args:
      saved: The query.
      url: The address of the site.
      writer: The format.
      token: What a site with accounts knows its visitor by.
    """
    if not url.startswith(("http://", "https://")):
        raise ParameterError(
            f"the address of a site begins with https:// or http://, got {url!r}. Name it with "
            "--url, or a site's file with --site."
        )
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    asked = Request(saved.address(url, writer.name), headers=headers)
    try:
        with urlopen(asked, timeout=_SECONDS) as answer:
            content: bytes = answer.read()
    except HTTPError as error:
        raise DataError(f"{url} refused the query: {_reason(error)}") from error
    except (URLError, OSError) as error:
        raise DataError(f"{url} does not answer: {getattr(error, 'reason', error)}.") from error
    return content


def from_site(saved: SavedQuery, site: Site, writer: Writer, file: str = "") -> bytes:
    """The table in a format, for a file of this name, made by a site in this process."""
    answer = site.dataset(saved.dataset).answer(saved.query)
    base = site.config.address.rstrip("/") or saved.url
    options = Teller(site, base, texts(site.config.languages[0])).options(answer)
    return writer.write(written_cube(answer), replace(options, file=file))


def _reason(error: HTTPError) -> str:
    try:
        told = json.loads(error.read())["error"]
        return f"{told['message']} {told['what_is_allowed']}"
    except (ValueError, KeyError, TypeError):
        return f"status {error.code}."
