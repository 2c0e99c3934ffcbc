#include "rendezvous/journal/event_bounds.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/text/shortened.h"
#include "rendezvous/membership/event_fields.h"
#include "rendezvous/snapshot/fields.h"

namespace hvd::rendezvous::journal {
namespace {

constexpr size_t kNumberBytes = 10;  // the most that a number takes, with its tag
constexpr int kLargestNumber = 1 << 30;

// Strings that say which one is meant. Shortened, they would say another one; all other strings are
// texts for people.
bool Identifies(absl::string_view field) {
  for (const absl::string_view name :
       {"host", "machine", "address", "store_address", "commit_address", "key", "value"}) {
    if (field == name) return true;
  }
  return false;
}

// Visits the fields of an event, as snapshot::FieldWriter does.
class Bounder {
 public:
  static constexpr bool kReads = false;

  void operator()() {}
  template <typename T, typename... Rest>
  void operator()(absl::string_view name, T& value, Rest&&... rest) {
    Visit(name, value);
    (*this)(std::forward<Rest>(rest)...);
  }

  size_t size() const { return size_; }

  absl::Status status() const {
    if (!too_long_.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the ", too_long_, " has more than ", text::kLongestText, " bytes"));
    }
    if (size_ > kLargestEvent) {
      return absl::InvalidArgumentError(
          absl::StrCat("the request has ", size_, " bytes, more than ", kLargestEvent));
    }
    return absl::OkStatus();
  }

 private:
  template <typename T>
  void Visit(absl::string_view, T& value) {
    if constexpr (snapshot::IsNumber<T>::value) {
      size_ += kNumberBytes;
    } else {
      snapshot::KeepParts(*this, value);
    }
  }
  void Visit(absl::string_view, int& value) {
    size_ += kNumberBytes;
    value = std::clamp(value, -kLargestNumber, kLargestNumber);
  }
  void Visit(absl::string_view name, std::string& value) {
    if (!Identifies(name)) {
      if (value.size() > text::kLongestText) value = text::Shortened(value);
    } else if (value.size() > text::kLongestText && name != "value") {
      too_long_ = std::string(name);
    }
    size_ += value.size() + kNumberBytes;
  }
  void Visit(absl::string_view name, std::vector<std::string>& value) {
    if (value.size() > kMostLines) value.resize(kMostLines);
    for (std::string& each : value) Visit(name, each);
  }
  template <typename T>
  void Visit(absl::string_view name, std::optional<T>& value) {
    if (value.has_value()) Visit(name, *value);
  }
  template <typename T>
  void Visit(absl::string_view name, std::vector<T>& value) {
    for (T& each : value) Visit(name, each);
  }

  size_t size_ = 0;
  std::string too_long_;  // the name of a field
};

}  // namespace

absl::Status Bound(membership::Event& event, size_t* bytes) {
  Bounder bounder;
  std::visit([&bounder](auto& each) { KeepFields(bounder, each); }, event);
  if (bytes != nullptr) *bytes = bounder.size();
  return bounder.status();
}

}  // namespace hvd::rendezvous::journal
