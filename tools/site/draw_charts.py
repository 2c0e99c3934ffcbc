"""draw_charts.py: draws the charts of docs/images from docs/images/benchmarks.json.

The figures in that file are copied from tools/bench/RESULTS.md. Each group of bars has a separate scale, so groups in
different units fit into one chart. The SVGs follow the reader's light or dark theme.
"""

import json
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
WIDTH = 480
NAMES, LONGEST = 150, 240  # the bars' left end, and the length of a group's longest bar
OURS = "Horovod"
STYLE = """<style>
  text { font: 14px sans-serif; fill: #1f2328 }
  .title { font-weight: bold }
  .ours { fill: #1a7f6b }
  .other { fill: #8c959f }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .ours { fill: #3fb8a0 }
    .other { fill: #6e7681 }
  }
</style>"""


def main() -> None:
    for chart in json.loads((IMAGES / "benchmarks.json").read_text(encoding="utf-8")):
        (IMAGES / chart["file"]).write_text(draw(chart), encoding="utf-8")


def draw(chart: dict[str, Any]) -> str:
    parts = [text(0, 16, chart["title"], "title")]
    y = 30
    for group in chart["groups"]:
        y += 20
        parts.append(text(0, y, group["name"]))
        longest = max(group["bars"].values())
        for name, value in group["bars"].items():
            length = max(2, round(LONGEST * value / longest))
            parts += [
                text(NAMES - 8, y + 21, name, anchor="end"),
                f'<rect class="{"ours" if name == OURS else "other"}" x="{NAMES}" y="{y + 8}" width="{length}" height="17" rx="2"/>',
                text(NAMES + length + 6, y + 21, f"{value:,} {group['unit']}"),
            ]
            y += 21
        y += 14
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}" role="img">'
    return "\n".join([head, f"<title>{escape(chart['title'])}</title>", STYLE, *parts, "</svg>\n"])


def text(x: int, y: int, words: str, style: str = "", anchor: str = "start") -> str:
    kind = f' class="{style}"' if style else ""
    return f'<text{kind} x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'


if __name__ == "__main__":
    main()
