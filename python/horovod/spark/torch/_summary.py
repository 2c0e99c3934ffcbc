"""The log of a training for TensorBoard, if it is installed."""

from typing import Any


class SummaryLog:
    """Scalars of each epoch. Nothing is written without TensorBoard, or if it is not wanted."""

    def __init__(self, folder: str, wanted: bool) -> None:
        self._writer: Any = None
        if wanted:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                return
            self._writer = SummaryWriter(folder)

    def add(self, entry: dict[str, Any]) -> None:
        """Writes an entry of a history, {"epoch": ..., "train": {...}, "validation": {...}}: train/loss, train/NAME:GROUP for the
        metrics of each group, and the same of val.
        """
        if self._writer is None:
            return
        for part, stage in (("train", "train"), ("validation", "val")):
            values = entry.get(part, {})
            scalars = {"loss": values["loss"]} if values else {}
            for number, group in enumerate(values.get("all_metrics", [])):
                scalars |= {f"{name}:{number}": value for name, value in group.items()}
            for name, value in scalars.items():
                self._writer.add_scalar(f"{stage}/{name}", value, entry["epoch"])
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
