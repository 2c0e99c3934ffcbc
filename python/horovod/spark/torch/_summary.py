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
        """Writes an entry of a history, {"epoch": ..., "train": {...}, "validation": {...}}, as train/NAME and val/NAME."""
        if self._writer is None:
            return
        for part, stage in (("train", "train"), ("validation", "val")):
            values = entry.get(part, {})
            scalars = {name: value for group in values.get("all_metrics", []) for name, value in group.items()}
            for name, value in {**scalars, **({"loss": values["loss"]} if values else {})}.items():
                self._writer.add_scalar(f"{stage}/{name}", value, entry["epoch"])
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
