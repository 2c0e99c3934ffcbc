#include "launcher/cli/runtime_flags.h"

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"

namespace hvd::launcher::cli {
namespace {

using settings::RuntimeSetting;

std::string FirstOf(absl::string_view names) {
  return std::string(names.substr(0, names.find(',')));
}

std::string Help(absl::string_view meaning, bool is_default) {
  return absl::StrCat(meaning, is_default ? " (default)" : "");
}

// The help text of a flag, with the default value in the flag's unit.
std::string HelpOfValue(const RuntimeSetting& setting) {
  if (setting.default_value.empty()) return std::string(setting.meaning);
  int64_t number = 0;
  const bool scaled = setting.factor != 1 && absl::SimpleAtoi(setting.default_value, &number);
  const std::string value =
      scaled ? absl::StrCat(number / setting.factor) : std::string(setting.default_value);
  return absl::StrCat(setting.meaning, " (", value, ")");
}

// Converts a flag's value to the variable's value.
absl::StatusOr<std::string> VariableOf(const RuntimeSetting& setting, const std::string& text) {
  const std::string flag = FirstOf(setting.flag);
  if (setting.factor != 1) {
    // INT32_MAX: the product with each factor of the table fits into 64 bits.
    ASSIGN_OR_RETURN(const int64_t value, options::ParseInteger(flag, text, 0, INT32_MAX));
    return absl::StrCat(value * setting.factor);
  }
  // The worker's own parser: what it would refuse on every host is refused here, before any start.
  settings::RuntimeEnv scratch;
  const std::string problem = text.empty() ? "something" : setting.read(text, &scratch);
  if (problem.empty()) return text;
  return absl::InvalidArgumentError(absl::StrCat(flag, "='", text, "': must be ", problem));
}

}  // namespace

void RuntimeFlags::Declare(options::FlagTable& flags) {
  absl::string_view group;
  for (const RuntimeSetting& setting : settings::RuntimeSettings()) {
    if (setting.flag.empty()) continue;
    if (setting.group != group) flags.Group(std::string(setting.group));
    group = setting.group;
    setting.kind == RuntimeSetting::Kind::kSwitch ? DeclareSwitch(flags, setting)
                                                  : DeclareValue(flags, setting);
  }
}

void RuntimeFlags::DeclareSwitch(options::FlagTable& flags, const RuntimeSetting& setting) {
  const bool usual = setting.default_value == "1";
  flags.Flag(std::string(setting.flag), Help(setting.meaning, usual),
             [this, &setting] { values_[&setting] = "1"; });
  flags.Flag(std::string(setting.flag_for_0), Help(setting.meaning_of_0, !usual),
             [this, &setting] { values_[&setting] = "0"; });
  flags.Opposites(FirstOf(setting.flag), FirstOf(setting.flag_for_0));
}

void RuntimeFlags::DeclareValue(options::FlagTable& flags, const RuntimeSetting& setting) {
  flags.Value(std::string(setting.flag), std::string(setting.value_name), HelpOfValue(setting),
              [this, &setting](const std::string& text) {
                ASSIGN_OR_RETURN(values_[&setting], VariableOf(setting, text));
                return absl::OkStatus();
              });
}

std::vector<Assignment> RuntimeFlags::variables() const {
  const auto is_on = [this](absl::string_view variable) {
    for (const auto& [setting, value] : values_) {
      if (setting->variable == variable) return value != "0";
    }
    return false;
  };
  std::vector<Assignment> variables;
  // Ordered by the rows' addresses, which is the order of the table.
  for (const auto& [setting, value] : values_) {
    // As in Horovod: without --autotune the details of tuning are not passed on.
    if (!setting->only_with.empty() && !is_on(setting->only_with)) continue;
    variables.emplace_back(setting->variable, value);
  }
  return variables;
}

}  // namespace hvd::launcher::cli
