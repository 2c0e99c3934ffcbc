#include "options/settings_file.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <optional>
#include <set>
#include <sstream>
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
constexpr char kNotYaml[] = "not valid YAML";

// Walks through a YAML document and collects its settings.
class Flattener {
 public:
  explicit Flattener(const std::string& file) : file_(file) {}

  absl::Status AddGroup(const YAML::Node& group, const std::string& prefix, int depth) {
    for (const auto& entry : group) {
      const int line = LineOf(entry.first);
      if (!entry.first.IsScalar() || entry.first.Scalar().empty()) {
        return Error(line, "a key must be a word");
      }
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

// The beginning of a document, and that of what it holds.
class DocumentBegin : public YAML::EventHandler {
 public:
  const YAML::Mark& mark() const { return mark_; }
  const std::optional<YAML::Mark>& content() const { return content_; }

  void OnDocumentStart(const YAML::Mark& mark) override { mark_ = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { Note(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string&) override {
    Note(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    Note(mark);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    Note(mark);
  }
  void OnMapEnd() override {}

 private:
  void Note(const YAML::Mark& mark) {
    if (!content_.has_value()) content_ = mark;
  }

  YAML::Mark mark_;
  std::optional<YAML::Mark> content_;
};

// Checks that only the first document holds anything. At some tokens, as a comma where a document
// begins, yaml-cpp stops with an empty document before them: YAML::LoadAll would find documents
// without end.
absl::Status CheckOneDocument(const std::string& text, const Flattener& flattener) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  std::optional<int> last;
  for (DocumentBegin found; parser.HandleNextDocument(found); found = DocumentBegin()) {
    if (last == found.mark().pos) return flattener.Error(found.mark().line + 1, kNotYaml);
    if (last.has_value() && found.content().has_value()) {
      return flattener.Error(found.content()->line + 1, "there must be one document only");
    }
    last = found.mark().pos;
  }
  return absl::OkStatus();
}

absl::Status CantRead(const std::string& file, absl::string_view why) {
  return absl::NotFoundError(absl::StrCat("can't read ", file, ": ", why));
}

}  // namespace

absl::StatusOr<std::vector<Setting>> ParseSettings(const std::string& text,
                                                   const std::string& file) {
  Flattener flattener(file);
  // The exceptions of yaml-cpp are caught only here.
  try {
    RETURN_IF_ERROR(CheckOneDocument(text, flattener));
    const YAML::Node document = YAML::Load(text);
    if (document.IsNull()) return std::vector<Setting>{};
    if (!document.IsMap()) {
      return flattener.Error(Flattener::LineOf(document), "must be of the form 'key: value'");
    }
    RETURN_IF_ERROR(flattener.AddGroup(document, "", 1));
  } catch (const YAML::Exception& error) {
    return flattener.Error(
        error.mark.line + 1,
        absl::StrCat(kNotYaml, ": ", absl::StrReplaceAll(error.msg, {{"\n", " "}})));
  }
  return std::move(flattener.settings());
}

absl::StatusOr<std::vector<Setting>> ReadSettings(const std::string& file) {
  const absl::StatusOr<std::string> text = text::ReadGivenFile(file, kMostMib);
  if (!text.ok()) return CantRead(file, text.status().message());
  return ParseSettings(*text, file);
}

}  // namespace hvd::options
