#include "launcher/cli/config_file.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/settings/runtime_settings.h"
#include "base/status_macros.h"
#include "base/text/edit_distance.h"
#include "options/command_line.h"

namespace hvd::launcher::cli {
namespace {

using settings::RuntimeSetting;
using Kind = RuntimeSetting::Kind;

struct Key {
  absl::string_view name;
  Kind kind;
  absl::string_view flag;        // a switch: if it is true
  absl::string_view other = {};  // a switch: if it is false
};

// Horovod's key for --gloo and --mpi, of which the latter's own refusal gives the reason.
constexpr char kController[] = "controller";

// Horovod's own files have none of these groups, and Horovod ignores them. A key is named like its
// flag, without the name of its group.
constexpr Key kJobKeys[] = {
    {"job.np", Kind::kText, "--num-proc"},
    {"job.hosts", Kind::kText, "--hosts"},
    {"job.hostfile", Kind::kText, "--hostfile"},
    {"job.launcher", Kind::kText, "--launcher"},
    {"job.ssh_port", Kind::kNumber, "--ssh-port"},
    {"job.ssh_identity_file", Kind::kText, "--ssh-identity-file"},
    {"job.network_interfaces", Kind::kText, "--network-interfaces"},
    {"job.start_timeout", Kind::kNumber, "--start-timeout"},
    {"elastic.min_np", Kind::kNumber, "--min-np"},
    {"elastic.max_np", Kind::kNumber, "--max-np"},
    {"elastic.spares", Kind::kNumber, "--spares"},
    {"elastic.timeout", Kind::kNumber, "--elastic-timeout"},
    {"elastic.join_delay", Kind::kNumber, "--join-delay"},
    {"elastic.grace", Kind::kNumber, "--grace"},
    {"elastic.host_discovery_script", Kind::kText, "--host-discovery-script"},
    {"elastic.slots_per_host", Kind::kNumber, "--slots-per-host"},
    {"elastic.reset_limit", Kind::kNumber, "--reset-limit"},
    {"elastic.max_failures", Kind::kText, "--max-failures"},
    {"elastic.max_failures_in_a_row", Kind::kNumber, "--max-failures-in-a-row"},
    {"elastic.restart", Kind::kSwitch, "--elastic-restart"},
    {"elastic.blacklist_cooldown_range", Kind::kText, "--blacklist-cooldown-range"},
    {"output.filename", Kind::kText, "--output-filename"},
    {"output.rotate_mb", Kind::kNumber, "--output-rotate-mb"},
    {"output.rotate_files", Kind::kNumber, "--output-rotate-files"},
    {"output.format", Kind::kText, "--output-format"},
    {"output.prefix_timestamp", Kind::kSwitch, "--prefix-timestamp"},
    {"output.ranks_filter", Kind::kText, "--ranks-filter"},
    {"output.event_log", Kind::kText, "--event-log"},
    {"output.metrics", Kind::kText, "--metrics"},
};

// The known keys: those of Horovod that are supported, those of the job, and some that are
// recognised only to be refused. All other keys are errors. Settings become flags, whose own checks
// and messages then apply to them: a flag that is refused gives the reason for its key, too.
const std::vector<Key>& Keys() {
  static const auto* const keys = [] {
    auto* all = new std::vector<Key>{
        {kController, Kind::kText, ""},
        {"library_options.mpi_threads_disable", Kind::kSwitch, "--mpi-threads-disable",
         "--no-mpi-threads-disable"},
        {"library_options.num_nccl_streams", Kind::kNumber, "--num-nccl-streams"},
    };
    all->insert(all->end(), std::begin(kJobKeys), std::end(kJobKeys));
    // The first spelling is the one that messages name.
    const auto first = [](absl::string_view names) { return names.substr(0, names.find(',')); };
    for (const RuntimeSetting& setting : settings::RuntimeSettings()) {
      if (setting.key.empty()) continue;
      Key key = {setting.key, setting.kind, first(setting.flag), first(setting.flag_for_0)};
      // "stall_check.enabled: true" is HOROVOD_STALL_CHECK_DISABLE=0.
      if (setting.key_says_0) std::swap(key.flag, key.other);
      all->push_back(key);
    }
    return all;
  }();
  return *keys;
}

const Key* FindKey(absl::string_view name) {
  const auto found =
      std::find_if(Keys().begin(), Keys().end(), [&](const Key& key) { return key.name == name; });
  return found == Keys().end() ? nullptr : &*found;
}

bool IsGroup(absl::string_view name) {
  return std::any_of(Keys().begin(), Keys().end(), [&](const Key& key) {
    return absl::StartsWith(key.name, absl::StrCat(name, "."));
  });
}

// The keys of this name in any group; else the one that resembles it most, if any does.
std::vector<std::string> KeysMeantBy(const std::string& name) {
  std::vector<std::string> meant;
  for (const Key& key : Keys()) {
    if (absl::EndsWith(key.name, absl::StrCat(".", name))) meant.emplace_back(key.name);
  }
  if (!meant.empty()) return meant;
  // As for flags: a third of the letters may be wrong.
  const int allowed = std::max<int>(1, name.size() / 3);
  std::vector<absl::string_view> names;
  for (const Key& key : Keys()) names.emplace_back(key.name);
  const absl::string_view closest = text::Nearest(name, names, allowed);
  if (!closest.empty()) meant.emplace_back(closest);
  return meant;
}

std::string UnknownKey(const std::string& name) {
  const std::vector<std::string> meant = KeysMeantBy(name);
  return absl::StrCat(
      "unknown key ", name,
      meant.empty() ? "" : absl::StrCat("; did you mean ", absl::StrJoin(meant, " or "), "?"));
}

absl::StatusOr<std::string> SwitchArgument(const Key& key, const options::Setting& setting) {
  // All spellings that PyYAML, the parser of Horovod, accepts as booleans.
  const auto is_one_of = [&](std::initializer_list<absl::string_view> words) {
    // In quotes the same word is a text.
    return setting.kind == options::Setting::Kind::kPlain &&
           std::find(words.begin(), words.end(), setting.value) != words.end();
  };
  if (is_one_of({"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) {
    return std::string(key.flag);
  }
  if (is_one_of({"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})) {
    return std::string(key.other);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(key.name, ": '", setting.value, "' is not true or false"));
}

absl::StatusOr<std::string> ControllerArgument(const options::Setting& setting) {
  for (const char* name : {"gloo", "mpi"}) {
    if (setting.value == name) return absl::StrCat("--", name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(kController, ": '", setting.value, "' is not gloo or mpi"));
}

// Converts a setting to a command line argument; empty if the setting has no effect.
absl::StatusOr<std::string> ArgumentOf(const options::Setting& setting) {
  const Key* key = FindKey(setting.key);
  if (key == nullptr && !IsGroup(setting.key)) {
    return absl::InvalidArgumentError(UnknownKey(setting.key));
  }
  if (key == nullptr) {
    // A group whose settings are all commented out.
    if (setting.kind == options::Setting::Kind::kEmpty) return "";
    return absl::InvalidArgumentError(absl::StrCat(setting.key, ": must be a group of settings"));
  }
  if (setting.kind == options::Setting::Kind::kEmpty) {
    return absl::InvalidArgumentError(absl::StrCat(key->name, ": has no value"));
  }
  if (key->name == kController) return ControllerArgument(setting);
  if (key->kind == Kind::kSwitch) return SwitchArgument(*key, setting);
  if (key->kind == Kind::kNumber && setting.kind == options::Setting::Kind::kQuoted) {
    return absl::InvalidArgumentError(
        absl::StrCat(key->name, ": '", setting.value, "' is a text; a number has no quotes"));
  }
  return absl::StrCat(key->flag, "=", setting.value);
}

}  // namespace

absl::StatusOr<std::vector<ConfigFlag>> FlagsOfSettings(
    const std::vector<options::Setting>& settings, const std::string& file) {
  std::vector<ConfigFlag> flags;
  for (const options::Setting& setting : settings) {
    const std::string where = absl::StrCat(file, ":", setting.line, ": ");
    const absl::StatusOr<std::string> argument = ArgumentOf(setting);
    if (!argument.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(where, argument.status().message()));
    }
    if (!argument->empty()) flags.push_back({where + setting.key, *argument});
  }
  return flags;
}

absl::StatusOr<std::vector<ConfigFlag>> ReadConfigFile(const std::string& file) {
  ASSIGN_OR_RETURN(const std::vector<options::Setting> settings, options::ReadSettings(file));
  return FlagsOfSettings(settings, file);
}

}  // namespace hvd::launcher::cli
