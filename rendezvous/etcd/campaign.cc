#include "rendezvous/etcd/campaign.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/failpoint/failpoint.h"
#include "base/status_macros.h"
#include "rendezvous/etcd/lease_schedule.h"
#include "rendezvous/etcd/trouble.h"

namespace hvd::rendezvous::etcd {
namespace {

// Short, since a signal ends the campaign only between two attempts.
constexpr absl::Duration kPause = absl::Milliseconds(250);
// How long a candidate that does not stand by waits for the lease of a dead leader, such as its own
// predecessor, to expire.
const absl::Duration kLongestOldLease = 2 * LeaseSchedule::kLease;

bool IsRefusal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsPermissionDenied(status) ||
         absl::IsUnauthenticated(status) || absl::IsFailedPrecondition(status);
}

// One campaign; used once.
class Race {
 public:
  Race(KeyValueStore& store, const JobKeys& keys, const Candidate& candidate,
       const CampaignCallbacks& callbacks, Clock& clock)
      : store_(store),
        key_(keys.Leader()),
        candidate_(candidate),
        callbacks_(callbacks),
        clock_(clock),
        trouble_(store.name(), "waits for it") {}

  absl::StatusOr<Election> Run() {
    while (!callbacks_.gives_up()) {
      const absl::StatusOr<std::optional<Election>> result = Try();
      if (result.ok()) {
        if (const auto line = trouble_.Succeeded(clock_.Now())) callbacks_.say(*line);
        if (result->has_value()) return **result;
      } else if (absl::IsAlreadyExists(result.status())) {
        return result.status();
      } else if (IsRefusal(result.status())) {
        return absl::InvalidArgumentError(absl::StrCat("--etcd: etcd at ", store_.name(),
                                                       " refuses: ", result.status().message()));
      } else if (const auto line = trouble_.Failed(result.status(), clock_.Now())) {
        callbacks_.say(*line);
      }
      Pause();
    }
    return absl::CancelledError("");
  }

 private:
  // One attempt. Returns nullopt if another daemon leads, or another attempt is due.
  absl::StatusOr<std::optional<Election>> Try() {
    etcdserverpb::RangeRequest request;
    request.set_key(key_);
    ASSIGN_OR_RETURN(const etcdserverpb::RangeResponse found,
                     store_.Range(request, LeaseSchedule::kLease));
    // Read before standing, because a standby daemon does this four times a second: a grant of a
    // lease is a write to etcd's log, and a read is not.
    if (found.kvs_size() == 0) return Stand();
    const etcdserverpb::KeyValue& leader = found.kvs(0);
    // The key has the lease of an earlier attempt: it had succeeded, but its answer was lost.
    if (lease_ != 0 && leader.lease() == lease_) return Election{leader.create_revision(), lease_};
    RETURN_IF_ERROR(Follow(leader));
    return std::nullopt;
  }

  // Tries to become the leader: creates the leader's key, attached to a new lease, in a transaction
  // that succeeds only if the key does not exist. The revision of that transaction identifies the
  // leadership.
  absl::StatusOr<std::optional<Election>> Stand() {
    // If this attempt fails, the lease expires by itself. So does a key that a delayed transaction
    // of an earlier attempt creates with an earlier lease.
    ASSIGN_OR_RETURN(lease_, store_.GrantLease(LeaseSchedule::kLease));
    RETURN_IF_ERROR(FAILPOINT_STATUS("daemon.etcd.lease_granted"));
    etcdserverpb::TxnRequest request;
    etcdserverpb::Compare& vacant = *request.add_compare();
    vacant.set_target(etcdserverpb::Compare::CREATE);
    vacant.set_key(key_);
    vacant.set_create_revision(0);
    etcdserverpb::PutRequest& put = *request.add_success()->mutable_request_put();
    put.set_key(key_);
    put.set_value(candidate_.name);
    put.set_lease(lease_);
    ASSIGN_OR_RETURN(const etcdserverpb::TxnResponse response, store_.Txn(request));
    if (!response.succeeded()) return std::nullopt;
    RETURN_IF_ERROR(FAILPOINT_STATUS("daemon.etcd.elected"));
    return Election{response.header().revision(), lease_};
  }

  absl::Status Follow(const etcdserverpb::KeyValue& leader) {
    if (leader.create_revision() != followed_) {
      followed_ = leader.create_revision();
      since_ = clock_.Now();
      callbacks_.say(absl::StrCat("stands by: the job is led by ", LeaderText(leader.value())));
    }
    // Measured from when this daemon has first seen the leader, by its own clock. So the clocks of
    // different hosts are never compared.
    if (candidate_.stands_by || clock_.Now() - since_ < kLongestOldLease) return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat("--job: the job is led by the daemon at ",
                                                 LeaderText(leader.value()),
                                                 "; --standby waits to take its place"));
  }

  void Pause() {
    // Waits on the clock for a condition that never holds, so that a test's clock decides when the
    // pause ends.
    absl::MutexLock lock(&mu_);
    bool never = false;
    clock_.AwaitWithDeadline(mu_, absl::Condition(&never), clock_.Now() + kPause);
  }

  KeyValueStore& store_;
  const std::string key_;
  const Candidate& candidate_;
  const CampaignCallbacks& callbacks_;
  Clock& clock_;
  Trouble trouble_;
  absl::Mutex mu_;
  int64_t lease_ = 0;     // the lease of the last attempt; 0: none
  int64_t followed_ = 0;  // create_revision of the leader that was last reported
  absl::Time since_;
};

}  // namespace

absl::StatusOr<Election> Campaign(KeyValueStore& store, const JobKeys& keys,
                                  const Candidate& candidate, const CampaignCallbacks& callbacks,
                                  Clock& clock) {
  return Race(store, keys, candidate, callbacks, clock).Run();
}

}  // namespace hvd::rendezvous::etcd
