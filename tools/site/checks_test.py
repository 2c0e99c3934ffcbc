"""Tests of the checks and the makers of pages: each finds the fault that it is for."""

import re
import unittest

import drawings
import headers
import programs_page
from check_pages import Code, codes, problem_of, unknown_options
from lay_out import ROOT

KNOWN = {"horovodrun": {"-np", "--min-np", "-m"}, "horovod-agent": {"--join"}}


def blocks(text: str) -> list[Code]:
    return [code for code in codes("page.md", text) if code.language != "span"]


class Pages(unittest.TestCase):
    def test_code_that_parses_is_no_problem(self) -> None:
        for block in blocks("```python\nwith server:\n    ...\n```\n\n```bash\nif true; then ls; fi\n```\n"):
            self.assertEqual(problem_of(block), "")

    def test_code_that_does_not_parse_is_found(self) -> None:
        python, shell = blocks("```python\ndef f(:\n```\n\ntext\n\n```bash\nif then\n```\n")
        self.assertIn("page.md:2: this Python does not parse", problem_of(python))
        self.assertIn("page.md:8: bash does not parse this", problem_of(shell))

    def test_fragment_is_left_out(self) -> None:
        self.assertEqual(blocks("<!-- fragment -->\n\n```python\ndef f(:\n```\n"), [])

    def test_unknown_option_of_a_program_is_found(self) -> None:
        code = Code("page.md:1", "bash", "horovodrun -np 2 \\\n  --no-such python x.py --join")
        self.assertEqual(list(unknown_options(code, KNOWN)), ["page.md:1: horovodrun has no option --no-such"])

    def test_options_of_the_users_command_are_left_alone(self) -> None:
        self.assertEqual(
            list(unknown_options(Code("", "bash", "horovod-agent --join a:1 -- prog --anything"), KNOWN)), []
        )

    def test_options_of_the_users_module_are_left_alone(self) -> None:
        code = Code("page.md:1", "bash", "horovodrun -np 2 -m package.train --anything")
        self.assertEqual(list(unknown_options(code, KNOWN)), [])

    def test_unknown_option_that_stands_alone_is_found(self) -> None:
        (span,) = codes("page.md", "Use `--no-such-option 3`.")
        self.assertEqual(list(unknown_options(span, KNOWN)), ["page.md:1: no program has an option --no-such-option"])


HELP = """Usage: prog [options]

General:
  -h,--help                                   Print this text
  -np,--num-proc N                            Number of processes
  --an-option-whose-name-is-long-enough NAME:NUMBER
                                              Begins below
  --an-option-that-ends-before-the-column-x N One blank between

Elastic (on with --min-np):
  --rate A|B                                  A rate

Examples: prog -np 2

Refused:
  --mpi --tcp
"""


class Programs(unittest.TestCase):
    def test_each_group_of_options_is_a_table(self) -> None:
        rows = [line for line in programs_page.markdown(HELP).split("\n") if line.startswith("| `")]
        self.assertEqual(
            rows,
            [
                "| `-h`, `--help` | Print this text |",
                "| `-np`, `--num-proc N` | Number of processes |",
                "| `--an-option-whose-name-is-long-enough NAME:NUMBER` | Begins below |",
                "| `--an-option-that-ends-before-the-column-x N` | One blank between |",
                "| `--rate A\\|B` | A rate |",
            ],
        )

    def test_text_around_the_options_is_kept(self) -> None:
        made = programs_page.markdown(HELP)
        self.assertTrue(made.startswith("```text\nUsage: prog [options]\n```\n\n**General**\n\n|"))
        self.assertTrue(made.endswith("```text\nExamples: prog -np 2\n\nRefused:\n  --mpi --tcp\n```"))

    def test_option_without_a_meaning_is_found(self) -> None:
        with self.assertRaisesRegex(ValueError, "not an option with its meaning: --bare"):
            programs_page.markdown("Usage: prog\n\nOptions:\n  --bare\n")

    def test_only_the_marked_parts_of_the_page_change(self) -> None:
        parts = [f"## {call}\n<!-- help: {call} -->\nold\n<!-- end of help -->" for call in programs_page.CALLS]
        page = "\n".join(["# Programs", *parts, "The end\n"])
        made = programs_page.up_to_date(page, lambda call: f"Usage: {call}\n")
        self.assertEqual(made, programs_page.up_to_date(made, lambda call: f"Usage: {call}\n"))
        self.assertNotIn("old", made)
        self.assertIn("```text\nUsage: horovodrun stop\n```\n\n<!-- end of help -->\n## horovod-agent\n", made)
        self.assertTrue(made.startswith("# Programs\n## horovodrun\n") and made.endswith("The end\n"))

    def test_page_without_one_of_the_programs_is_found(self) -> None:
        with self.assertRaisesRegex(ValueError, "the page has the options of "):
            programs_page.up_to_date("<!-- help: horovodrun -->\n<!-- end of help -->\n", lambda _: "")


class Headers(unittest.TestCase):
    def test_comment_describes_the_declarations_after_it(self) -> None:
        text = "/* Adds. */\nint add(int a);\nint sub(int a); /* subtracts */\n\nint bare(void);\n\n/* ---- Part */\n\nint last;\n"
        self.assertEqual(
            list(headers.pieces(text)),
            [
                ("Adds.", "int add(int a);"),
                ("subtracts", "int sub(int a);"),
                ("", "int bare(void);"),
                ("---- Part", ""),
                ("", "int last;"),
            ],
        )

    def test_function_without_body_and_initializers(self) -> None:
        self.assertEqual(
            headers.signature_of("explicit A(const T& t = {}) : t_(t) { f(); }"), "explicit A(const T& t = {});"
        )

    def test_errors_are_a_list_and_indented_lines_are_code(self) -> None:
        words = "Adds.\n\n  add(1);\n\nErrors:\n  - NOT_FOUND: there is\n    none.\n"
        made = headers.markdown(words)
        self.assertIn("```cpp\nadd(1);\n```", made)
        self.assertIn("Errors:\n\n- NOT_FOUND: there is\n    none.", made)


CHART = """flowchart TD
    subgraph host ["a host"]
        agent["agent"] -->|"starts & watches"| worker(["worker"])
    end
    daemon["daemon"] -.-> host
"""


class Drawings(unittest.TestCase):
    def test_block_becomes_one_element_with_its_words(self) -> None:
        page = drawings.with_drawings(f"before\n\n```mermaid\n{CHART}```\n\nafter\n")
        self.assertRegex(page, r"\Abefore\n\n<div class=\"drawing\"><svg .*</svg></div>\n\nafter\n\Z")
        for words in ("agent", "starts &amp; watches", "worker", "daemon", "a host"):
            self.assertIn(f">{words}</text>", page)

    def test_frame_has_its_boxes_and_is_an_end_of_arrows(self) -> None:
        chart = drawings.parse(CHART)
        self.assertEqual(chart.boxes_in("host"), ["agent", "worker"])
        self.assertIn("lhead=cluster_host style=dashed", drawings.dot(chart))

    def test_what_it_does_not_know_is_named(self) -> None:
        for text, problem in (
            ("sequenceDiagram\n", "not with: sequenceDiagram"),
            ("flowchart TD\na{no}\n", "does not know this line of a drawing: a{no}"),
            ('flowchart TD\na["x"] --> b\n', "an arrow at b, but no box"),
        ):
            with self.assertRaisesRegex(ValueError, problem):
                drawings.parse(text)

    def test_worker_lifecycle_is_drawn_as_its_table_has_it(self) -> None:
        source = (ROOT / "rendezvous/lifecycle/worker_lifecycle.cc").read_text()
        rows = re.findall(r"\{Life::k(\w+), Move::k(\w+), Life::k(\w+)\}", source)
        page = (ROOT / "docs/design/membership.md").read_text()
        (chart,) = [chart for chart in map(drawings.parse, drawings.BLOCK.findall(page)) if chart.round_boxes]
        state = {name: words.title().replace(" ", "") for name, words in chart.boxes.items()}
        drawn = {
            (state[start], move, state[arrow.end])
            for arrow in chart.arrows
            for start in chart.boxes_in(arrow.start)
            for move in arrow.words.split(", ")
        }
        self.assertEqual(drawn, {row for row in rows if row[0] != row[2]})


if __name__ == "__main__":
    unittest.main()
