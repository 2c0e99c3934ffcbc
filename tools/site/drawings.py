"""Drawings: the flowcharts in ```mermaid blocks, as SVG that follows the reader's theme.

Mermaid itself draws in the browser, with a script of another host; a page must be readable from a disk. So Graphviz draws the
part of its language that the pages use, one statement a line:

    flowchart TD                   or LR
    a["words"]  a(["words"])       a box, a round box; where it is first named, also as an end of an arrow
    a --> b  a -->|"words"| b      also -.-> (dashed) and <--> (both ways); an end may be a frame
    subgraph a ["words"] ... end   a frame
"""

import re
import subprocess
import textwrap
from dataclasses import dataclass, field
from html import escape
from typing import Optional

NAME = r"\w+"
NODE = rf'({NAME})(?:\["([^"]*)"\]|\(\["([^"]*)"\]\))?'
NODE_LINE = re.compile(NODE)
ARROW_LINE = re.compile(rf'{NODE} (-->|-\.->|<-->)(?:\|"([^"]*)"\|)? {NODE}')
FRAME_LINE = re.compile(rf'subgraph ({NAME}) \["([^"]*)"\]')
DIRECTIONS = {"flowchart TD": "TB", "flowchart LR": "LR"}
WIDTH = 30  # characters of a line
BLOCK = re.compile(r"^```mermaid\n(.*?)^```\n", re.M | re.S)


@dataclass
class Frame:
    """A rectangle around boxes."""

    title: str
    names: list[str] = field(default_factory=list)  # of boxes and frames directly in it


@dataclass
class Arrow:
    """Its ends are boxes or frames."""

    start: str
    end: str
    kind: str
    words: str


@dataclass
class Chart:
    """What a block says."""

    direction: str = ""
    boxes: dict[str, str] = field(default_factory=dict)
    round_boxes: set[str] = field(default_factory=set)
    frames: dict[str, Frame] = field(default_factory=lambda: {"": Frame("")})  # "": the whole
    arrows: list[Arrow] = field(default_factory=list)

    def boxes_in(self, name: str) -> list[str]:
        """The boxes of a frame, also of frames in it; of a box itself."""
        if name not in self.frames:
            return [name]
        return [box for each in self.frames[name].names for box in self.boxes_in(each)]


def parse(text: str) -> Chart:
    """Raises ValueError with the line that it does not know."""
    chart, frames = Chart(), [""]
    for line in filter(None, map(str.strip, text.splitlines())):
        if not chart.direction:
            if line not in DIRECTIONS:
                raise ValueError(f"a drawing begins with one of {', '.join(DIRECTIONS)}, not with: {line}")
            chart.direction = DIRECTIONS[line]
        elif line == "end" and len(frames) > 1:
            frames.pop()
        elif match := FRAME_LINE.fullmatch(line):
            chart.frames[match.group(1)] = Frame(match.group(2))
            chart.frames[frames[-1]].names.append(match.group(1))
            frames.append(match.group(1))
        elif match := ARROW_LINE.fullmatch(line):
            for box in (match.groups()[:3], match.groups()[5:]):
                add_box(chart, frames[-1], *box)
            chart.arrows.append(Arrow(match.group(1), match.group(6), match.group(4), match.group(5) or ""))
        elif match := NODE_LINE.fullmatch(line):
            add_box(chart, frames[-1], *match.groups())
        else:
            raise ValueError(f"tools/site/drawings.py does not know this line of a drawing: {line}")
    return check(chart)


def add_box(chart: Chart, frame: str, name: str, words: Optional[str], round_words: Optional[str]) -> None:
    text = words or round_words
    if text is not None:
        chart.boxes[name] = text
        chart.frames[frame].names.append(name)
    if round_words is not None:
        chart.round_boxes.add(name)


def check(chart: Chart) -> Chart:
    for name in (end for arrow in chart.arrows for end in (arrow.start, arrow.end)):
        if name not in chart.boxes and name not in chart.frames:
            raise ValueError(f"the drawing has an arrow at {name}, but no box of that name")
    return chart


def quoted(words: str) -> str:
    """Words as Graphviz's label, in short lines."""
    lines = [line for part in words.split("<br/>") for line in textwrap.wrap(part, WIDTH)]
    return '"' + "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines) + '"'


def members(chart: Chart, name: str) -> list[str]:
    """A frame's boxes and frames as statements of Graphviz."""
    lines = []
    for each in chart.frames[name].names:
        if each in chart.frames:
            title = quoted(chart.frames[each].title)
            lines += [f"subgraph cluster_{each} {{ label={title};", *members(chart, each), "}"]
        else:
            style = "style=rounded margin=0.2" if each in chart.round_boxes else "style=solid"
            lines.append(f"{each} [label={quoted(chart.boxes[each])} {style}];")
    return lines


def arrow_statement(chart: Chart, arrow: Arrow) -> str:
    """An arrow at a frame goes to the middle one of its boxes, and is cut at the frame's border."""
    ends, options = [], [f"label={quoted(arrow.words)}"]
    for end, option in ((arrow.start, "ltail"), (arrow.end, "lhead")):
        boxes = chart.boxes_in(end)
        ends.append(boxes[len(boxes) // 2])
        if end in chart.frames:
            options.append(f"{option}=cluster_{end}")
    options += ["style=dashed"] if arrow.kind == "-.->" else []
    options += ["dir=both"] if arrow.kind == "<-->" else []
    return f"{ends[0]} -> {ends[1]} [{' '.join(options)}];"


def dot(chart: Chart) -> str:
    """The chart in Graphviz's language."""
    font = 'fontname="DejaVu Sans" fontsize=11'
    return "\n".join(
        [
            "digraph {",
            f"graph [rankdir={chart.direction} compound=true bgcolor=transparent nodesep=0.35 ranksep=0.4 {font}];",
            f'node [shape=box height=0.4 margin="0.14,0.07" {font}];',
            f"edge [arrowsize=0.7 {font}];",
            *members(chart, ""),
            *(arrow_statement(chart, arrow) for arrow in chart.arrows),
            "}",
        ]
    )


def svg(text: str) -> str:
    """A drawing as an element of HTML, without empty lines: Markdown takes it as one block."""
    chart = parse(text)
    drawn = subprocess.run(["dot", "-Tsvg"], input=dot(chart), stdout=subprocess.PIPE, text=True, check=True).stdout
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<title>.*?</title>|<!--.*?-->", "", drawn, flags=re.S)  # names of boxes, which would be tooltips
    drawn = re.sub(r'\s(fill|stroke|font-family)="(?!none)[^"]*"', "", drawn)  # site.css has them
    label = escape("; ".join(words.replace("<br/>", " ") for words in chart.boxes.values()))
    drawn = drawn.replace("<svg", f'<svg role="img" aria-label="Drawing: {label}"', 1)
    return f'<div class="drawing">{"".join(drawn.splitlines())}</div>\n'


def with_drawings(page: str) -> str:
    """The page with a drawing in place of each block."""
    return BLOCK.sub(lambda block: svg(block.group(1)), page)
