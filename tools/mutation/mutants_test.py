"""Tests of the mutants."""

from mutants import mutants_of


def changed(line, is_python=False):
    return [mutant.after for mutant in mutants_of(line, is_python)]


def test_each_comparison_and_number_is_changed():
    assert changed("  if (a == b && c < 3) {") == [
        "  if (a != b && c < 3) {",
        "  if (a == b && c <= 3) {",
        "  if (a == b || c < 3) {",
        "  if (a == b && c < 4) {",
    ]


def test_a_statement_or_a_guard_is_left_out():
    assert "  ;" in changed("  host->drain.reset();")
    assert "  ;" in changed("  if (finished) return;")
    assert "  ;" not in changed("  return finished;") + changed("  if (finished) {")


def test_negations_go_and_come():
    assert changed("  return !finished;") == ["  return finished;"]
    assert "if not (ready):" in changed("if ready:", True)
    assert "if ready:" in changed("if not ready:", True)


def test_texts_comments_and_parts_of_words_stay():
    assert changed('  Say("a == b, 3 and true");') == ["  ;"]
    assert changed("  // a == b") == []
    assert changed("  return construed;  // == 3") == []
    assert changed('"""a == b"""', True) == []


def test_python():
    assert changed("x = a is None and True", True) == [
        "x = a is None or True",
        "x = a is not None and True",
        "x = a is None and False",
        "pass",
    ]


def test_lines_are_numbered():
    (mutant,) = mutants_of("\nint F();\nbool g = true;\n", False)
    assert (mutant.line, mutant.before, mutant.after) == (3, "bool g = true;", "bool g = false;")
