#include "rendezvous/etcd/lease_keeper.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/failpoint/failpoint.h"
#include "base/status_macros.h"
#include "base/text/duration_text.h"

namespace hvd::rendezvous::etcd {

LeaseKeeper::LeaseKeeper(KeyValueStore& store, Leadership& leadership, std::string leader,
                         absl::Duration reattach)
    : store_(store),
      leadership_(leadership),
      leader_(std::move(leader)),
      schedule_(reattach, leadership.clock().Now()),
      thread_([this] { Run(); }) {}

LeaseKeeper::~LeaseKeeper() {
  leadership_.End();
  thread_.join();
  // If this fails, the lease expires by itself.
  (void)store_.RevokeLease(leadership_.lease());
}

void LeaseKeeper::Run() {
  Clock& clock = leadership_.clock();
  while (!leadership_.AwaitLoss(schedule_.next())) {
    // Counted from before the request was sent: etcd extended the lease at that time or later. This
    // daemon may try to lead beyond the end of the lease (see LeaseSchedule); FencedWriter makes
    // its writes fail once the lease has expired.
    const absl::Time sent = clock.Now();
    const absl::Status refreshed = Refresh();
    if (refreshed.ok()) {
      schedule_.Refreshed(sent);
    } else if (absl::IsAborted(refreshed)) {
      leadership_.Lose(refreshed);
    } else if (schedule_.IsOver(clock.Now())) {
      leadership_.Lose(absl::AbortedError(
          absl::StrCat("etcd at ", store_.name(), " has not answered for ",
                       text::DurationText(schedule_.patience()),
                       ", and another daemon may lead the job: ", refreshed.message())));
    } else {
      schedule_.Failed(clock.Now());
    }
  }
}

absl::Status LeaseKeeper::Refresh() {
  Clock& clock = leadership_.clock();
  ASSIGN_OR_RETURN(const bool is_alive,
                   store_.KeepAlive(leadership_.lease(), schedule_.limit(clock.Now())));
  if (!is_alive) return absl::AbortedError("this daemon's lease in etcd has ended");
  RETURN_IF_ERROR(FAILPOINT_STATUS("daemon.etcd.lease_renewed"));
  // A live lease does not prove the leadership: somebody may have deleted the key, and then another
  // daemon can create it.
  etcdserverpb::RangeRequest request;
  request.set_key(leader_);
  ASSIGN_OR_RETURN(const etcdserverpb::RangeResponse found,
                   store_.Range(request, schedule_.limit(clock.Now())));
  if (found.kvs_size() == 0 || found.kvs(0).create_revision() != leadership_.revision()) {
    return absl::AbortedError("this daemon's key in etcd was removed");
  }
  return absl::OkStatus();
}

}  // namespace hvd::rendezvous::etcd
