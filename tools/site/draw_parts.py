"""draw_parts.py: draws docs/images/parts.svg, the programs of a job and who talks to whom.

The SVG follows the reader's light or dark theme.
"""

from pathlib import Path
from xml.sax.saxutils import escape

IMAGE = Path(__file__).resolve().parents[2] / "docs" / "images" / "parts.svg"
WIDTH, HEIGHT = 480, 424
STYLE = """<style>
  text { font: 14px sans-serif; fill: #1f2328; text-anchor: middle }
  .bold { font-weight: bold }
  .note { font-size: 13px; fill: #59636e }
  rect { fill: #f6f8fa; stroke: #59636e; stroke-width: 1.5 }
  .host { fill: none; stroke-dasharray: 5 4 }
  .worker { fill: #d2efe9; stroke: #1a7f6b }
  path { fill: none; stroke: #59636e; stroke-width: 1.5 }
  marker path { fill: #59636e; stroke: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .note { fill: #9198a1 }
    rect { fill: #21262d; stroke: #9198a1 }
    .host { fill: none }
    .worker { fill: #123d36; stroke: #3fb8a0 }
    path { stroke: #9198a1 }
    marker path { fill: #9198a1 }
  }
</style>"""
ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse">'
    '<path d="M0 0L8 4L0 8z"/></marker></defs>'
)


def main() -> None:
    parts = [
        *box(10, 10, 170, 54, "horovodrun", "launcher"),
        *box(260, 10, 210, 54, "rendezvous daemon", "decides on ranks"),
        *arrow("M180 37H258", 219, 28, "contains"),
        *arrow("M60 64V168", 136, 100, "starts each agent"),
        *note(136, 118, "(SSH, srun, ...)"),
        *arrow("M344 64V168", 0, 0, "", both=True),
        *note(414, 100, "agents, workers:"),
        *note(414, 118, "gRPC with TLS"),
    ]
    for left, name, ranks in ((10, "host 1", (0, 1)), (250, "host 2", (2, 3))):
        parts += [
            f'<rect class="host" x="{left}" y="150" width="220" height="194" rx="8"/>',
            *note(left + 186, 164 + 4, name),
            *box(left + 15, 176, 190, 48, "horovod-agent", "starts, watches, stops"),
            *arrow(f"M{left + 60} 224V268", 0, 0, ""),
            *arrow(f"M{left + 160} 224V268", 0, 0, ""),
            *box(left + 12, 270, 92, 54, "worker", f"rank {ranks[0]}", "worker"),
            *box(left + 116, 270, 92, 54, "worker", f"rank {ranks[1]}", "worker"),
        ]
    parts += [
        *arrow("M68 324V366H418V326", 0, 0, "", both=True),
        *note(240, 386, "between workers: shared memory in a host,"),
        *note(240, 404, "Gloo over TCP (or NCCL) between hosts"),
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    title = "<title>horovodrun contains the rendezvous daemon and starts an agent on each host; agents start workers</title>"
    IMAGE.write_text(
        "\n".join([head, title, STYLE, ARROW, *(part for part in parts if part), "</svg>\n"]), encoding="utf-8"
    )


def box(x: int, y: int, width: int, height: int, name: str, what: str, style: str = "") -> list[str]:
    kind = f' class="{style}"' if style else ""
    middle = x + width // 2
    return [
        f'<rect{kind} x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>',
        f'<text class="bold" x="{middle}" y="{y + height // 2 - 4}">{escape(name)}</text>',
        f'<text class="note" x="{middle}" y="{y + height // 2 + 15}">{escape(what)}</text>',
    ]


def arrow(path: str, x: int, y: int, words: str, both: bool = False) -> list[str]:
    start = ' marker-start="url(#arrow)"' if both else ""
    return [f'<path d="{path}" marker-end="url(#arrow)"{start}/>', *(note(x, y, words) if words else [])]


def note(x: int, y: int, words: str) -> list[str]:
    return [f'<text class="note" x="{x}" y="{y}">{escape(words)}</text>']


if __name__ == "__main__":
    main()
