"""Report files: their two formats, and writing them batch by batch."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from unpoison.system.closing import Closing
from unpoison.system.paths import check_output

REPORT_SUFFIXES = (".parquet", ".csv")


class ReportWriter(Closing):
    """Writes reports as Parquet or CSV, by the ending of the path, batch by batch.

    Used in a `with` statement: it is then closed before its file, whatever happens.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "reports.csv")
    ...     with path.open("wb") as file, ReportWriter(file, path) as writer:
    ...         writer.write(np.array([0, 1]), np.array([0.5, -2.0]))
    ...     pacsv.read_csv(path).to_pydict()
    {'group': [0, 1], 'value': [0.5, -2.0]}
    """

    def __init__(
        self, file: IO[bytes], path: str | Path, *, whole: bool = False, users: bool = False
    ) -> None:
        check_output(path, suffixes=REPORT_SUFFIXES)
        value = pa.int64() if whole else pa.float64()
        fields = [("group", pa.int32()), ("value", value)]
        self.schema = pa.schema([("user", pa.string()), *fields] if users else fields)
        csv = Path(path).suffix.lower() == ".csv"
        self.writer = (pacsv.CSVWriter if csv else pq.ParquetWriter)(file, self.schema)

    def write(self, group: np.ndarray, value: np.ndarray, user: Any = None) -> None:
        """Append one row for each report."""
        columns = {"user": user, "group": group, "value": value}
        arrays = [pa.array(columns[field.name]).cast(field.type) for field in self.schema]
        self.writer.write_batch(pa.record_batch(arrays, schema=self.schema))

    def close(self) -> None:
        """Write what the format has at the end of a file."""
        self.writer.close()
