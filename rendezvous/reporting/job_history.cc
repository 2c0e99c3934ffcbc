#include "rendezvous/reporting/job_history.h"

namespace hvd::rendezvous::reporting {

void JobHistory::Observe(const membership::Notice& notice, absl::Time time) {
  ++counts_[static_cast<size_t>(notice.kind)];
  if (notice.kind == membership::Notice::Kind::kWorldFormed) newest_world_ = time;
  recent_.push_back({notice, time});
  if (recent_.size() > kRecent) recent_.pop_front();
  tally_.Observe(notice, time);
}

}  // namespace hvd::rendezvous::reporting
