#include "launcher/spawn/command.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace hvd::launcher::spawn {
namespace {

// Whether this character has no special meaning in any shell, csh and fish included.
bool IsPlain(char c) { return absl::ascii_isalnum(c) || absl::StrContains("_-./:,+@%", c); }

}  // namespace

std::string ShellQuote(absl::string_view argument) {
  bool plain = !argument.empty();
  for (const char c : argument) plain = plain && IsPlain(c);
  if (plain) return std::string(argument);
  // In single quotes no character is special except the quote itself, which is written outside of
  // them, as \'.
  return absl::StrCat("'", absl::StrReplaceAll(argument, {{"'", "'\\''"}}), "'");
}

std::string ShellJoin(const std::vector<std::string>& arguments) {
  return absl::StrJoin(arguments, " ", [](std::string* out, const std::string& argument) {
    out->append(ShellQuote(argument));
  });
}

}  // namespace hvd::launcher::spawn
