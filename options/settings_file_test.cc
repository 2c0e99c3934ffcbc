#include "options/settings_file.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::options {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> Flat(const std::string& text) {
  const auto settings = ParseSettings(text, "f");
  EXPECT_TRUE(settings.ok()) << settings.status();
  std::vector<std::string> lines;
  for (const Setting& setting : settings.value_or(std::vector<Setting>{})) {
    const char* kind = setting.kind == Setting::Kind::kQuoted  ? "'"
                       : setting.kind == Setting::Kind::kEmpty ? "?"
                                                               : "";
    lines.push_back(absl::StrCat(setting.line, " ", setting.key, "=", kind, setting.value));
  }
  return lines;
}

std::string Error(const std::string& text) {
  const auto settings = ParseSettings(text, "f");
  EXPECT_FALSE(settings.ok()) << text;
  const std::string message(settings.status().message());
  EXPECT_EQ(message.find('\n'), std::string::npos);
  return message;
}

TEST(ParseSettings, Groups_BecomeOneListWithLines) {
  EXPECT_THAT(Flat("# top\ncontroller: gloo\nparams:\n  a: 1\n  b: '2'\nlog: {level: x}\nnone:\n"),
              ElementsAre("2 controller=gloo", "4 params.a=1", "5 params.b='2", "6 log.level=x",
                          "7 none=?"));
}

TEST(ParseSettings, EmptyFile_HasNoSettings) {
  EXPECT_THAT(Flat(""), ElementsAre());
  EXPECT_THAT(Flat("# only this\n"), ElementsAre());
}

TEST(ParseSettings, BadFile_ErrorNamesTheLine) {
  EXPECT_THAT(Error("a: 1\nb: [\n"), StartsWith("f:"));
  EXPECT_THAT(Error("a: 1\n b: 2\n"), StartsWith("f:2: not valid YAML: "));
  EXPECT_THAT(Error("\tx: 1\n"), StartsWith("f:1: not valid YAML: "));
  EXPECT_EQ(Error("a: 1\nb:\n - 1\n"), "f:2: b: must not be a list");
  EXPECT_EQ(Error("a: 1\na: 2\n"), "f:2: a is given twice");
  EXPECT_EQ(Error("- a\n"), "f:1: must be of the form 'key: value'");
  EXPECT_EQ(Error("just words\n"), "f:1: must be of the form 'key: value'");
  EXPECT_EQ(Error("[a]: 1\n"), "f:1: a key must be a word");
  EXPECT_THAT(Error("a: 1\n---\nb: 2\n"), HasSubstr("one document only"));
  EXPECT_THAT(Error("---\n---\nb: 2\n"), HasSubstr("one document only"));
  EXPECT_THAT(Error("\n, a: 1\n"), HasSubstr(":2: not valid YAML"));
  EXPECT_EQ(Error("a: {b: {c: {d: 1}}}\n"), "f:1: a.b.c: too many groups");
}

TEST(ParseSettings, AliasOfItself_Ends) { EXPECT_FALSE(ParseSettings("a: &x {b: *x}", "f").ok()); }

TEST(ParseSettings, DeepNesting_IsRefused) {
  EXPECT_FALSE(ParseSettings("a: " + std::string(100000, '['), "f").ok());
}

TEST(ParseSettings, ManyAliases_AreRefused) {
  std::string text = "a: &a {";
  for (int i = 0; i < 100; ++i) absl::StrAppend(&text, "k", i, ": 1, ");
  absl::StrAppend(&text, "}\n");
  for (int i = 0; i < 100; ++i) absl::StrAppend(&text, "b", i, ": *a\n");
  EXPECT_THAT(Error(text), HasSubstr("too many settings"));
}

TEST(ReadSettings, File_IsReadAndNamed) {
  std::string name = ::testing::TempDir() + "/settings.XXXXXX";
  const int fd = mkstemp(name.data());
  ASSERT_GE(fd, 0);
  close(fd);
  std::ofstream(name) << "a: 1\n";
  EXPECT_EQ(ReadSettings(name)->size(), 1u);
  std::ofstream(name) << "a: [";
  EXPECT_THAT(std::string(ReadSettings(name).status().message()), StartsWith(name + ":1: "));
  std::ofstream(name) << "a: " << std::string(2 << 20, 'x');
  EXPECT_THAT(std::string(ReadSettings(name).status().message()), HasSubstr("longer than"));
  unlink(name.c_str());
  EXPECT_EQ(ReadSettings(name).status().message(),
            "can't read " + name + ": No such file or directory");
  EXPECT_THAT(std::string(ReadSettings("/tmp").status().message()), HasSubstr("a directory"));
  EXPECT_THAT(std::string(ReadSettings("/dev/zero").status().message()), HasSubstr("longer than"));
}

}  // namespace
}  // namespace hvd::options
