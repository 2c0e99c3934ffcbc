#include "launcher/search_warnings.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd {
namespace {

// A script that thinks of new rubbish each time is not listened to for ever.
constexpr size_t kMostTexts = 20;

}  // namespace

std::string SearchWarnings::Judge(const absl::Status& status) {
  if (status.ok()) {
    ever_succeeded_ = true;
    failing_ = false;
    return "";
  }
  if (absl::IsInvalidArgument(status)) {
    if (rubbish_.size() >= kMostTexts) return "";
    if (!rubbish_.insert(std::string(status.message())).second) return "";
  } else if (std::exchange(failing_, true)) {
    return "";
  }
  return absl::StrCat(status.message(), "; the hosts known so far stay");
}

}  // namespace hvd
