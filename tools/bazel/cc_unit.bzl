"""cc_unit: a C++ library with its unit test and its fuzz target. unit_test: a test of several units, or another test of one."""

_COMMON = ["//base:status_macros", "//third_party:abseil"]

def cc_unit(name, srcs = None, hdrs = None, deps = [], test = True, test_deps = [], test_size = "small", test_tags = [], test_data = [], **kwargs):
    """Makes the library of NAME.h and NAME.cc (if there is one), the test of NAME_test.cc and the fuzz target of NAME_fuzz.cc (if there are such).

    All may use Abseil and base/status_macros.h without saying so.

    Args:
      name: the library's name, and the stem of its files.
      srcs: the sources, if they are not just NAME.cc.
      hdrs: the headers, if they are not just NAME.h.
      deps: what the library includes. The test may include it, too.
      test: False if the test has a separate rule.
      test_deps: what only the test includes.
      test_size: how long the test may take, as everywhere.
      test_tags: the test's tags.
      test_data: the files that the test reads.
      **kwargs: for the library.
    """
    common = [label for label in _COMMON if label != "//%s:%s" % (native.package_name(), name)]
    native.cc_library(
        name = name,
        srcs = native.glob([name + ".cc"]) if srcs == None else srcs,
        hdrs = [name + ".h"] if hdrs == None else hdrs,
        deps = common + deps,
        **kwargs
    )
    if test and native.glob([name + "_test.cc"]):
        unit_test(
            name = name + "_test",
            size = test_size,
            tags = test_tags,
            data = test_data,
            deps = [":" + name] + [label for label in deps + test_deps if label not in _COMMON],
        )

    if native.glob([name + "_fuzz.cc"]):
        _fuzz_target(name + "_fuzz", "testdata/%s_fuzz" % name, [":" + name] + deps + test_deps)

def _fuzz_target(name, corpus, deps):
    """Makes the fuzz target of NAME.cc, which tools/fuzz runs, and NAME_test, which gives it each file of the corpus."""
    deps = _COMMON + ["//tests/support:fuzzing"] + [label for label in deps if label not in _COMMON]
    native.cc_test(
        name = name + "_test",
        size = "small",
        srcs = [name + ".cc"],
        args = [native.package_name() + "/" + corpus],
        data = native.glob([corpus + "/**"]),
        deps = deps + ["//tests/support:corpus_main"],
    )
    native.cc_binary(
        name = name,
        testonly = True,
        srcs = [name + ".cc"],
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["fuzz", "manual"],
        deps = deps,
    )

def unit_test(name, srcs = None, size = "small", deps = [], **kwargs):
    """Makes the test of NAME.cc, which may use GoogleTest, Abseil and base/status_macros.h without saying so.

    Args:
      name: the test's name, and the stem of its file.
      srcs: the sources, if they are not just NAME.cc.
      size: how long it may take, as everywhere.
      deps: what else it includes.
      **kwargs: as for any test.
    """
    native.cc_test(
        name = name,
        size = size,
        srcs = [name + ".cc"] if srcs == None else srcs,
        deps = _COMMON + ["//third_party:gtest_main"] + deps,
        **kwargs
    )
