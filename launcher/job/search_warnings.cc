#include "launcher/job/search_warnings.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"

namespace hvd::launcher::job {

std::string SearchWarnings::CheckSuccess(absl::Time now) {
  ever_succeeded_ = true;
  // kCalm is counted from the first success after the last failure.
  well_since_ = std::min(well_since_, now);
  if (told_.empty() || now < well_since_ + kCalm) return "";
  told_.clear();
  return absl::StrCat("host discovery has worked again for ", text::DurationText(kCalm));
}

std::string SearchWarnings::Check(const absl::Status& status, absl::Time now) {
  if (status.ok()) return CheckSuccess(now);
  well_since_ = absl::InfiniteFuture();
  const std::string text(status.message());
  const auto told = told_.find(status.code());
  if (told != told_.end() && (told->second.text == text || now < told->second.when + kPause)) {
    return "";
  }
  told_[status.code()] = {text, now};
  return absl::StrCat(text, "; the hosts known so far stay");
}

}  // namespace hvd::launcher::job
