// A worker's session with the rendezvous daemon: join, watch, exchange, report.
#ifndef WORKER_RUNTIME_SESSION_RENDEZVOUS_SESSION_H_
#define WORKER_RUNTIME_SESSION_RENDEZVOUS_SESSION_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "base/net/tls_session.h"
#include "collectives/key_exchange.h"
#include "rendezvous/client/rendezvous_client.h"
#include "worker_runtime/session/stall_reporter.h"
#include "worker_runtime/session/world.h"
#include "worker_runtime/session/world_lease.h"

namespace hvd::worker_runtime::session {

// Makes a client. Each user has a separate one, so that its calls can be cancelled without those of
// others.
using ClientFactory = std::function<std::unique_ptr<rendezvous::client::RendezvousClient>()>;

// The events of an epoch.
enum class EpochEvent {
  kChanging,  // another world will be formed; this one works until its members leave it
  kBroken,    // a member has failed, so collectives can't complete
  kOver,      // the job is over, or the daemon can no longer be reached
};

// A watch for changes of one epoch, on a separate thread. The destructor stops the watch and joins
// the thread.
class EpochWatch {
 public:
  // Called on the watch's thread, with a reason of one line. A call with kBroken or kOver is the
  // last one. Must not destroy the watch.
  using Callback = std::function<void(EpochEvent, const std::string&)>;

  // If the daemon can't be reached in spite of the client's retries, the watch tries for another
  // `reattach` before it reports kOver.
  EpochWatch(std::unique_ptr<rendezvous::client::RendezvousClient> client,
             pb::WatchEpochRequest request, absl::Duration reattach, Callback on_change);
  ~EpochWatch();

 private:
  void Run(pb::WatchEpochRequest request);

  const std::unique_ptr<rendezvous::client::RendezvousClient> client_;
  const absl::Duration reattach_;
  const Callback on_change_;
  std::thread thread_;
};

// A worker's identity and settings, from its agent.
struct WorkerStanding {
  WorkerId id;
  std::string advertise_address;
  bool elastic = false;
  absl::Duration reattach;         // how long to go on while the daemon can't be reached
  net::TlsIdentity identity = {};  // for connections to other workers, if the job encrypts
  absl::Duration report_pause = WorldLease::kPause;  // between two reports of rank 0's progress
};

// Thread-safe; one per process and job. The incarnation is the same in all worlds of this process,
// so that the daemon can tell it from the process that replaces it.
class Session {
 public:
  Session(WorkerStanding standing, Incarnation incarnation, ClientFactory new_client);

  // Asks the daemon for the next world, with `request`, of which this fills in who asks, where it
  // is and its last epoch. Blocks until the daemon has formed a world with this worker, or answers
  // otherwise; `timeout` is for static jobs, because in an elastic job the daemon bounds the wait.
  // The world's `members` may call this session, which must outlive it.
  // Errors:
  //   - DeadlineExceeded: not all members have arrived; the message says what the daemon waits for.
  //   - FailedPrecondition: the job is over, or another process has replaced this worker; or the
  //     daemon was not reached for as long as the job allows, so that a further call would be in
  //     vain.
  //   - Internal: the daemon's answer is invalid.
  absl::StatusOr<JoinAnswer> JoinNextWorld(pb::JoinWorldRequest request, absl::Duration timeout);

  // Returns a key exchange of the epoch's members through the daemon. It must not outlive the
  // session.
  std::unique_ptr<collectives::KeyExchange> NewKeyExchange(Epoch epoch);

  // Starts to watch the epoch; see EpochWatch.
  std::unique_ptr<EpochWatch> Watch(Epoch epoch, EpochWatch::Callback on_change);

  // Returns a reporter. Its requests must be made from StallRequest().
  std::unique_ptr<StallReporter> NewStallReporter(StallReporter::Untold untold);
  // Returns a request with this worker's identity and the epoch, without operations.
  pb::ReportStallRequest StallRequest(Epoch epoch) const;

  // Sets the newest commit, which rank 0 reports from now on.
  void NoteCommit(uint64_t number);
  // Sets the commit with which training begins in the world `epoch`; 0: at the start.
  void NoteBegin(Epoch epoch, uint64_t commit);
  // The checkpoints that this process writes; see Checkpoints in rendezvous.proto.
  struct Checkpoints {
    uint64_t commit = 0;
    absl::Duration age = absl::InfiniteDuration();
    std::string place;
    std::string failure;
  };
  // Sets them, to be reported from now on.
  void NoteCheckpoints(const Checkpoints& checkpoints);

  // Reports the job's progress to the daemon. OK: `epoch` is the newest and not broken.
  // Errors: those of RendezvousClient::Report.
  absl::Status ReportProgress(rendezvous::client::RendezvousClient& client, Epoch epoch,
                              absl::Duration timeout);
  absl::Status ReportProgress(Epoch epoch, absl::Duration timeout) {
    return ReportProgress(*client(), epoch, timeout);
  }

  // Returns the lease of an epoch, whose tolerance is `patience` plus the reattach time. It must
  // not outlive the session.
  std::unique_ptr<WorldLease> NewLease(Epoch epoch, absl::Duration patience);

  // Reports that this worker leaves `epoch` cleanly. Then closes the connection, unless something
  // else uses it, because a daemon that shuts down waits for open connections. A later call opens
  // another one.
  // Errors: those of RendezvousClient::Report.
  absl::Status ReportFinished(Epoch epoch, absl::Duration timeout);

  // As Failure in rendezvous.proto.
  struct FailureReport {
    std::string message;
    bool caused_by_peer = false;
    uint64_t commit = 0;
    bool ends_job = false;
  };
  // Reports that this worker is about to fail. Closes the connection like ReportFinished.
  // Errors: those of RendezvousClient::Report.
  absl::Status ReportFailure(Epoch epoch, const FailureReport& failure, absl::Duration timeout);

  const WorkerStanding& standing() const { return standing_; }
  // The epoch of the newest world that this process has joined; 0: none.
  Epoch last_epoch() const;

 private:
  // Returns the client for this object's own calls; makes it if there is none.
  std::shared_ptr<rendezvous::client::RendezvousClient> client();
  absl::StatusOr<pb::JoinWorldResponse> Join(const pb::JoinWorldRequest& request,
                                             absl::Duration timeout);
  absl::Status ReportAndDisconnect(const pb::ReportRequest& request, absl::Duration timeout);
  absl::StatusOr<std::vector<Peer>> AskForMembers(Epoch epoch, int size);
  void FillIdentity(pb::WorkerIdentity* identity) const;
  void FillProgress(Epoch epoch, pb::Progress& progress) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const WorkerStanding standing_;
  const Incarnation incarnation_;
  const ClientFactory new_client_;
  mutable absl::Mutex mutex_;
  // nullptr: not connected.
  std::shared_ptr<rendezvous::client::RendezvousClient> client_ ABSL_GUARDED_BY(mutex_);
  Epoch last_epoch_ ABSL_GUARDED_BY(mutex_);
  uint64_t commit_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration committed_ ABSL_GUARDED_BY(mutex_);  // time since boot
  Epoch begun_ ABSL_GUARDED_BY(mutex_);  // the newest world in which training has begun; 0: none
  uint64_t began_with_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<Checkpoints> checkpoints_ ABSL_GUARDED_BY(mutex_);
  absl::Duration checkpoints_at_ ABSL_GUARDED_BY(mutex_);  // since boot: when its age was right
};

}  // namespace hvd::worker_runtime::session

#endif  // WORKER_RUNTIME_SESSION_RENDEZVOUS_SESSION_H_
