"""The table builder: sites of data sets, their pages and interfaces, made from protected cubes.

`build` and `data.live` touch records; nothing else in this folder can reach them.
"""

from discreet.errors import MissingDependencyError
from discreet.lazy import lazy_names


def require_web() -> None:
    """Say what to install when the web packages are missing."""
    try:
        import fastapi  # noqa: F401 -- optional packages
        import sqlalchemy  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        packages = "fastapi, uvicorn and sqlalchemy"
        raise MissingDependencyError("the table builder", packages, "serve") from error


__getattr__ = lazy_names(
    __name__,
    {
        "answer": "Question",
        "app": "make_app",
        "data.cache": "DiskCache",
        "data.dataset": "Dataset DatasetInfo",
        "data.inner": "InnerSource InnerTable write_build",
        "data.live": "LiveSource PrivateSource RecipeTables",
        "office.audit": "AuditEntry AuditLog",
        "office.config": "AccountsConfig Role",
        "office.credentials": "add_token revoke_token",
        "office.database": "AUDIT OfficeDatabase",
        "office.office": "Office",
        "policy.policy": "Policy",
        "query": "Query View",
        "refusals": "Refusal",
        "run": "TimeoutProtocol serving",
        "site.config": "SiteConfig read_site site_of",
        "site.site": "Site SiteHolder",
        "site.start": "load_site start_site",
        "static.build": "write_site",
        "web.texts": "texts",
    },
)
