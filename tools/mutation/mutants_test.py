"""Tests of the mutants."""

import unittest

from mutants import mutants_of


def changed(line: str, is_python: bool = False) -> list[str]:
    return [mutant.after for mutant in mutants_of(line, is_python)]


class MutantsTest(unittest.TestCase):
    def test_each_comparison_and_number_is_changed(self) -> None:
        expected = [
            "  if (a != b && c < 3) {",
            "  if (a == b && c <= 3) {",
            "  if (a == b || c < 3) {",
            "  if (a == b && c < 4) {",
        ]
        self.assertEqual(changed("  if (a == b && c < 3) {"), expected)

    def test_a_statement_or_a_guard_is_left_out(self) -> None:
        self.assertIn("  ;", changed("  host->drain.reset();"))
        self.assertIn("  ;", changed("  if (finished) return;"))
        self.assertNotIn("  ;", changed("  return finished;") + changed("  if (finished) {"))

    def test_negations_go_and_come(self) -> None:
        self.assertEqual(changed("  return !finished;"), ["  return finished;"])
        self.assertIn("if not (ready):", changed("if ready:\n    x()", True))
        self.assertIn("if ready:", changed("if not ready:\n    x()", True))

    def test_texts_comments_and_parts_of_words_stay(self) -> None:
        self.assertEqual(changed('  Say("a == b, 3 and true");'), ["  ;"])
        self.assertEqual(changed("  // a == b"), [])
        self.assertEqual(changed("  return construed;  // == 3"), [])
        self.assertEqual(changed('"""a == b\n\nc == d"""', True), [])

    def test_python(self) -> None:
        expected = ["x = a is None or True", "x = a is not None and True", "x = a is None and False", "pass"]
        self.assertEqual(changed("x = a is None and True", True), expected)

    def test_lines_are_numbered(self) -> None:
        (mutant,) = mutants_of("\nint F();\nbool g = true;\n", False)
        self.assertEqual((mutant.line, mutant.before, mutant.after), (3, "bool g = true;", "bool g = false;"))


if __name__ == "__main__":
    unittest.main()
