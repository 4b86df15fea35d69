"""The table builder: sites of data sets, their pages and interfaces, made from protected cubes.

`build` and `data.live` touch records; nothing else in this folder can reach them.
"""

from discreet.errors import MissingDependencyError


def require_web() -> None:
    """Say what to install when the web packages are missing."""
    try:
        import fastapi  # noqa: F401 -- optional packages
        import sqlalchemy  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        packages = "fastapi, uvicorn and sqlalchemy"
        raise MissingDependencyError("the table builder", packages, "serve") from error
