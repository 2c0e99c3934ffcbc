#include "launcher/spawn/command.h"

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/os/process.h"
#include "gtest/gtest.h"

namespace hvd::launcher::spawn {
namespace {

// The arguments as a real shell passes them on, each followed by a zero byte.
std::string ThroughShell(const std::string& text) {
  Pipe pipe = MakePipe().value();
  os::SpawnOptions options;
  options.file = "/bin/sh";
  options.argv = {"sh", "-c", "printf '%s\\0' " + text};
  options.stdout_fd = pipe.write.get();
  os::Process process = os::Process::Spawn(options).value();
  pipe.write.reset();
  std::string output;
  char buffer[4096];
  for (IoResult got; !(got = ReadSome(pipe.read.get(), buffer, sizeof(buffer))).end;) {
    output.append(buffer, got.bytes);
  }
  return output;
}

const std::vector<std::string>& HardArguments() {
  static const auto* const arguments = new std::vector<std::string>{
      "plain",    "two words", "",          "'",      "''", "it's", "\"",    "$HOME",
      "`id`",     "a;b",       "a&&b",      "a|b>c",  "*",  "~",    "~root", "-n",
      "\\",       "\\n",       "new\nline", "tab\t",  "#",  "!",    "a=b",   "{a,b}",
      "\xff\xfe", "ümlaut",    " lead",     "trail ", "(",  "%s"};
  return *arguments;
}

TEST(ShellQuoteTest, ShellQuote_PlainWord_StaysAsItIs) {
  EXPECT_EQ(ShellQuote("/usr/lib/python3.11/a-b_c"), "/usr/lib/python3.11/a-b_c");
}

TEST(ShellQuoteTest, ShellJoin_RealShell_GivesTheSameArguments) {
  std::string expected;
  for (const std::string& argument : HardArguments()) expected += argument + '\0';
  EXPECT_EQ(ThroughShell(ShellJoin(HardArguments())), expected);
}

TEST(ShellQuoteTest, ShellQuote_QuotedTwice_SurvivesTwoShells) {
  std::string expected;
  for (const std::string& argument : HardArguments()) expected += argument + '\0';
  const std::string inner = "printf '%s\\0' " + ShellJoin(HardArguments());
  const std::string once = ThroughShell("\"$(sh -c " + ShellQuote(inner) + " | tr '\\0' '\\1')\"");
  std::string got = once.substr(0, once.size() - 1);
  for (char& c : got) c = c == '\1' ? '\0' : c;
  EXPECT_EQ(got, expected);
}

TEST(ShellQuoteTest, ShellQuote_EveryByte_SurvivesTheShell) {
  for (int byte = 1; byte < 256; ++byte) {
    const std::string argument = {'a', static_cast<char>(byte), 'b'};
    EXPECT_EQ(ThroughShell(ShellQuote(argument)), argument + '\0') << byte;
  }
}

}  // namespace
}  // namespace hvd::launcher::spawn
