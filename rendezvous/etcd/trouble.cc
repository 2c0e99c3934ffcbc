#include "rendezvous/etcd/trouble.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"

namespace hvd::rendezvous::etcd {
namespace {

// A remedy that etcd's message does not mention.
std::string Remedy(const absl::Status& why) {
  if (!absl::StrContains(why.message(), "space")) return "";
  return " (free some, and disarm the alarm: etcdctl compact, defrag, alarm disarm)";
}

}  // namespace

std::optional<std::string> Trouble::Failed(const absl::Status& why, absl::Time now) {
  if (!since_.has_value()) since_ = now;
  // A short failure is not reported: etcd answers with errors while its members elect a leader.
  const bool due = said_.has_value() ? now - *said_ >= kAgain : now - *since_ >= kUnsaid;
  if (!due) return std::nullopt;
  said_ = now;
  return absl::StrCat("etcd at ", store_, " has failed for ", text::DurationText(now - *since_),
                      ": ", why.message(), Remedy(why), "; ", meanwhile_);
}

std::optional<std::string> Trouble::Succeeded(absl::Time now) {
  const std::optional<absl::Time> since = since_;
  const bool was_said = said_.has_value();
  since_.reset();
  said_.reset();
  if (!was_said) return std::nullopt;
  return absl::StrCat("etcd at ", store_, " works again, after ", text::DurationText(now - *since));
}

}  // namespace hvd::rendezvous::etcd
