#include "collectives/hierarchical/host_exchange.h"

#include "base/status_macros.h"

namespace hvd {

absl::StatusOr<std::vector<std::string>> HostExchange::AllGather(absl::string_view key,
                                                                 absl::string_view value,
                                                                 absl::Duration timeout) {
  if (done_) return absl::InternalError("a host's ranks exchange keys once only");
  done_ = true;
  ASSIGN_OR_RETURN(const std::vector<std::string> all, whole_.AllGather(key_, value, timeout));
  std::vector<std::string> ours;
  ours.reserve(members_.size());
  for (const int rank : members_) {
    if (static_cast<size_t>(rank) >= all.size()) {
      return absl::InternalError("the key exchange has lost ranks");
    }
    ours.push_back(all[rank]);
  }
  return ours;
}

absl::Status HostExchange::Finish(absl::Duration timeout) {
  if (done_) return absl::OkStatus();
  return AllGather(key_, "", timeout).status();
}

}  // namespace hvd
