"""Metrics of a server with several processes, any of which may be asked for those of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from unpoison.collector.service.metrics import Metrics
from unpoison.collector.service.worker_role import WorkerRole

LABEL = "worker"
"""The label that tells the processes apart. Each has its own series, so that the counters of one
that was started anew begin at zero without the others' seeming to fall."""


def publish_metrics(metrics: Metrics, role: WorkerRole) -> None:
    """Leave the metrics of this process where the others find them.

    >>> publish_metrics(Metrics(), WorkerRole())
    """
    if role.folder is not None:
        # Renamed when it is whole. It need not survive a power cut: no flush to the disk.
        draft = role.folder / f".metrics-{role.index}"
        draft.write_bytes(metrics.text())
        draft.replace(_file(role.folder, role.index))


def server_metrics(metrics: Metrics, role: WorkerRole) -> bytes:
    """The metrics of all processes: of this one as they are, of others as last published.

    >>> b'unpoison_enrolments_total 0.0' in server_metrics(Metrics(), WorkerRole())
    True
    """
    if role.folder is None:
        return metrics.text()
    texts = {role.index: metrics.text().decode()}
    for file in role.folder.glob(_file(role.folder, "*").name):
        # A process that was just replaced may have left nothing yet.
        with suppress(OSError):
            texts.setdefault(int(file.stem.partition("-")[2]), file.read_text())
    return merged_metrics(texts)


def merged_metrics(texts: Mapping[int, str]) -> bytes:
    """Merge metrics in Prometheus' text format; each sample says whose it is.

    >>> text = "# TYPE users gauge\\nusers 3.0\\n"
    >>> print(merged_metrics({0: text, 1: text}).decode())
    # HELP users
    # TYPE users gauge
    users{worker="0"} 3.0
    users{worker="1"} 3.0
    <BLANKLINE>
    """
    registry = CollectorRegistry()
    registry.register(_Merged(texts))
    return generate_latest(registry)


class _Merged:
    """Parsed metrics of several processes as Prometheus' library collects them."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        self.texts = texts

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for worker, text in sorted(self.texts.items()):
            for parsed in text_string_to_metric_families(text):
                family = families.setdefault(
                    parsed.name, Metric(parsed.name, parsed.documentation, parsed.type)
                )
                for sample in parsed.samples:
                    labels = {**sample.labels, LABEL: str(worker)}
                    family.add_sample(sample.name, labels, sample.value)
        yield from families.values()


def _file(folder: Path, worker: int | str) -> Path:
    return folder / f"metrics-{worker}.prom"
