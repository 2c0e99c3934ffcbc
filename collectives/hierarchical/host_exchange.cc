#include "collectives/hierarchical/host_exchange.h"

#include "base/status_macros.h"

namespace hvd::collectives::hierarchical {

absl::StatusOr<std::vector<std::string>> HostExchange::AllGather(absl::string_view key,
                                                                 absl::string_view value,
                                                                 absl::Duration timeout) {
  if (done_) return absl::InternalError("a host's ranks can exchange keys only once");
  done_ = true;
  ASSIGN_OR_RETURN(Selected ours, whole_.Gather(key_, value, members_, timeout));
  return std::move(ours.values);
}

absl::Status HostExchange::Finish(absl::Duration timeout) {
  if (done_) return absl::OkStatus();
  return whole_.Gather(key_, "", {}, timeout).status();
}

}  // namespace hvd::collectives::hierarchical
