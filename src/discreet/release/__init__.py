"""From a protected table to what is handed out: whole numbers, records, files."""

from discreet.lazy import lazy_names

__getattr__ = lazy_names(
    __name__,
    {
        "cube": "Cube CubeAxis CubeEntry",
        "files": "write_csv",
        "formats.write": "Options writer_named writers",
    },
)
