"""Looking for a secret in everything that was written, also inside of what is compressed."""

import gzip
import re
import zlib
from base64 import b64decode
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

PACKED = re.compile(rb"[A-Za-z0-9+/]{64,}={0,2}")
"""What may be compressed data in base64, as a report's is."""


def files_with(secret: str, *folders: Path) -> list[Path]:
    """Files under the folders that hold the secret, or have it in their names, or link to such a name."""
    paths = [path for folder in folders for path in folder.rglob("*")]
    return [path for path in paths if _holds(path, secret.encode())]


def _holds(path: Path, secret: bytes) -> bool:
    if secret in path.name.encode() or (path.is_symlink() and secret in str(path.readlink()).encode()):
        return True
    return path.is_file() and any(secret in content for content in _contents(path))


def _contents(path: Path) -> list[bytes]:
    """The bytes of a file, and what they come to when read as what they are."""
    content = path.read_bytes()
    contents = [content, *_tables(path)]
    if content.startswith(b"\x1f\x8b"):
        contents.append(gzip.decompress(content))
    if path.suffix == ".html":
        for packed in PACKED.findall(content):
            with suppress(ValueError, OSError, EOFError, zlib.error):
                contents.append(gzip.decompress(b64decode(packed)))
    return contents


def _tables(path: Path) -> list[bytes]:
    """The rows of a DuckDB or Parquet file as CSV: both compress texts."""
    if path.suffix not in (".duckdb", ".parquet"):
        return []
    with TemporaryDirectory() as folder, duckdb.connect() as connection:
        csv = Path(folder) / "rows.csv"
        if path.suffix == ".parquet":
            tables = [f"read_parquet('{path}')"]
        else:
            connection.execute(f"ATTACH '{path}' AS looked_at (READ_ONLY)")
            names = connection.execute(
                "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'looked_at'"
            ).fetchall()
            tables = [f'looked_at."{schema}"."{name}"' for schema, name in names]
        contents = []
        for table in tables:
            connection.execute(f"COPY (SELECT * FROM {table}) TO '{csv}'")
            contents.append(csv.read_bytes())
        return contents
