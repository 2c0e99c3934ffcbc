#include "options/settings_file.h"

#include <yaml-cpp/yaml.h>

#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "base/text/given_file.h"

namespace hvd::options {
namespace {

// Far more than settings: a data set given by mistake is not read to its end.
constexpr size_t kMostMib = 1;
// Limits of the flattened result: with YAML aliases a small file can expand to an enormous
// document.
constexpr size_t kMostSettings = 1000;
constexpr int kMostGroups = 3;

// Walks through a YAML document and collects its settings.
class Flattener {
 public:
  explicit Flattener(const std::string& file) : file_(file) {}

  absl::Status AddGroup(const YAML::Node& group, const std::string& prefix, int depth) {
    for (const auto& entry : group) {
      const int line = LineOf(entry.first);
      if (!entry.first.IsScalar()) return Error(line, "a key must be a word");
      const std::string key = absl::StrCat(prefix, entry.first.Scalar());
      // yaml-cpp keeps both, PyYAML the last: neither tells the user.
      if (!keys_.insert(key).second) return Error(line, absl::StrCat(key, " is given twice"));
      if (keys_.size() > kMostSettings) return Error(line, "there are too many settings");
      RETURN_IF_ERROR(Add(entry.second, key, line, depth));
    }
    return absl::OkStatus();
  }

  absl::Status Error(int line, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(file_, ":", line, ": ", what));
  }
  static int LineOf(const YAML::Node& node) { return node.Mark().line + 1; }
  std::vector<Setting>& settings() { return settings_; }

 private:
  absl::Status Add(const YAML::Node& node, const std::string& key, int line, int depth) {
    if (node.IsMap()) {
      if (depth == kMostGroups) return Error(line, absl::StrCat(key, ": too many groups"));
      return AddGroup(node, key + ".", depth + 1);
    }
    if (node.IsSequence()) return Error(line, absl::StrCat(key, ": must not be a list"));
    // yaml-cpp gives a quoted scalar the tag "!".
    const auto kind = !node.IsScalar()    ? Setting::Kind::kEmpty
                      : node.Tag() == "!" ? Setting::Kind::kQuoted
                                          : Setting::Kind::kPlain;
    settings_.push_back({key, node.IsScalar() ? node.Scalar() : "", kind, line});
    return absl::OkStatus();
  }

  const std::string& file_;
  std::set<std::string> keys_;
  std::vector<Setting> settings_;
};

absl::Status CantRead(const std::string& file, absl::string_view why) {
  return absl::NotFoundError(absl::StrCat("can't read ", file, ": ", why));
}

}  // namespace

absl::StatusOr<std::vector<Setting>> ParseSettings(const std::string& text,
                                                   const std::string& file) {
  Flattener flattener(file);
  // The exceptions of yaml-cpp are caught only here.
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) {
      return flattener.Error(Flattener::LineOf(documents[1]), "there must be one document only");
    }
    if (documents.empty() || documents[0].IsNull()) return std::vector<Setting>{};
    if (!documents[0].IsMap()) {
      return flattener.Error(Flattener::LineOf(documents[0]), "must be of the form 'key: value'");
    }
    RETURN_IF_ERROR(flattener.AddGroup(documents[0], "", 1));
  } catch (const YAML::Exception& error) {
    return flattener.Error(
        error.mark.line + 1,
        absl::StrCat("not valid YAML: ", absl::StrReplaceAll(error.msg, {{"\n", " "}})));
  }
  return std::move(flattener.settings());
}

absl::StatusOr<std::vector<Setting>> ReadSettings(const std::string& file) {
  const absl::StatusOr<std::string> text = text::ReadGivenFile(file, kMostMib);
  if (!text.ok()) return CantRead(file, text.status().message());
  return ParseSettings(*text, file);
}

}  // namespace hvd::options
