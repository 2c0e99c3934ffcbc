#include "tests/support/datadriven.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"

namespace hvd {
namespace {

constexpr char kDivider[] = "----";

// Splits at spaces outside double quotes and drops the quotes.
absl::StatusOr<std::vector<std::string>> SplitWords(absl::string_view line) {
  std::vector<std::string> words;
  bool in_word = false;
  bool in_quotes = false;
  for (const char c : line) {
    if (c == ' ' && !in_quotes) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c == '"') {
      in_quotes = !in_quotes;
    } else {
      words.back().push_back(c);
    }
  }
  if (in_quotes) return absl::InvalidArgumentError("a quote is not closed");
  return words;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << "can't read " << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class FileTest : public testing::Test {
 public:
  FileTest(std::string path, bool rewrite, CommandHandler handler)
      : path_(std::move(path)), rewrite_(rewrite), handler_(std::move(handler)) {}

  void TestBody() override {
    const std::string expected = ReadFile(path_);
    const std::string real = RunScript(expected, handler_);
    if (!rewrite_) {
      EXPECT_EQ(real, expected) << path_ << "; if the new output is right, run with --rewrite";
    } else if (real != expected) {
      std::ofstream(path_) << real;
    }
  }

 private:
  const std::string path_;
  const bool rewrite_;
  const CommandHandler handler_;
};

std::string RunLine(absl::string_view line, const CommandHandler& handler) {
  absl::StatusOr<Command> command = Command::Parse(line);
  if (!command.ok()) return absl::StrCat("error: ", command.status().message(), ": ", line, "\n");
  std::string output = handler(*command);
  if (!output.empty() && output.back() != '\n') output.push_back('\n');
  const std::string error = command->error();
  if (!error.empty()) absl::StrAppend(&output, "error: ", error, ": ", line, "\n");
  return output;
}

}  // namespace

absl::StatusOr<Command> Command::Parse(absl::string_view line) {
  const absl::StatusOr<std::vector<std::string>> words = SplitWords(line);
  if (!words.ok()) return words.status();
  if (words->empty()) return absl::InvalidArgumentError("no command");
  Command command;
  command.name_ = words->front();
  for (size_t i = 1; i < words->size(); ++i) {
    const std::string& word = (*words)[i];
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      command.positional_.push_back(word);
    } else if (!command.named_.emplace(word.substr(0, equals), word.substr(equals + 1)).second) {
      return absl::InvalidArgumentError(absl::StrCat(word.substr(0, equals), " is given twice"));
    }
  }
  return command;
}

std::string Command::Text(const std::string& name, const std::string& by_default) {
  asked_[name] = true;
  const auto argument = named_.find(name);
  return argument == named_.end() ? by_default : argument->second;
}

int64_t Command::Number(const std::string& name, int64_t by_default) {
  const std::string text = Text(name);
  int64_t number = by_default;
  if (!IsGiven(name) || absl::SimpleAtoi(text, &number)) return number;
  error_ = absl::StrCat(name, " is not a number");
  return by_default;
}

absl::Duration Command::Time(const std::string& name, absl::Duration by_default) {
  const std::string text = Text(name);
  absl::Duration duration = by_default;
  if (!IsGiven(name) || absl::ParseDuration(text, &duration)) return duration;
  error_ = absl::StrCat(name, " is not a duration");
  return by_default;
}

bool Command::Has(absl::string_view word) const {
  return std::find(positional_.begin(), positional_.end(), word) != positional_.end();
}

std::string Command::error() const {
  if (!error_.empty()) return error_;
  for (const auto& [name, value] : named_) {
    if (asked_.count(name) == 0) return absl::StrCat("unknown argument ", name);
  }
  return "";
}

std::string RunScript(const std::string& text, const CommandHandler& handler) {
  std::string result;
  std::string output;  // of the commands of this block
  bool in_output = false;
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    if (in_output) {
      in_output = !line.empty();
      if (line.empty()) absl::StrAppend(&result, "\n");
      continue;
    }
    absl::StrAppend(&result, line, "\n");
    if (line == kDivider) {
      result += std::exchange(output, "");
      in_output = true;
    } else if (!line.empty() && line[0] != '#') {
      output += RunLine(line, handler);
    }
  }
  if (!output.empty()) absl::StrAppend(&result, kDivider, "\n", output);
  return result;
}

int DataDrivenMain(int argc, char** argv, const std::function<CommandHandler()>& new_handler) {
  testing::InitGoogleTest(&argc, argv);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool rewrite =
      std::find(arguments.begin(), arguments.end(), "--rewrite") != arguments.end();
  for (const std::string& path : arguments) {
    if (path == "--rewrite") continue;
    const std::vector<std::string> parts = absl::StrSplit(path, '/');
    const std::string name(absl::StripSuffix(parts.back(), ".txt"));
    testing::RegisterTest("Scenario", name.c_str(), nullptr, nullptr, path.c_str(), 1,
                          [path, rewrite, new_handler]() -> testing::Test* {
                            return new FileTest(path, rewrite, new_handler());
                          });
  }
  return RUN_ALL_TESTS();
}

}  // namespace hvd
