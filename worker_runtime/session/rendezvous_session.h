// A worker's session with the rendezvous daemon: join, watch, exchange, report.
#ifndef WORKER_RUNTIME_SESSION_RENDEZVOUS_SESSION_H_
#define WORKER_RUNTIME_SESSION_RENDEZVOUS_SESSION_H_

#include <functional>
#include <memory>
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

// Makes a separate client for each user, so that one can be cancelled without the others.
using ClientFactory = std::function<std::unique_ptr<rendezvous::client::RendezvousClient>()>;

// The events of an epoch.
enum class EpochEvent {
  kChanging,  // another world is wanted; this one works until the members leave it
  kBroken,    // its collectives can't complete
  kOver,      // the job is over, or the daemon can't be reached any more
};

// Waits on a separate thread for the end of one epoch. The destructor stops the wait and joins the
// thread.
class EpochWatch {
 public:
  // Called from the watch's thread, with a reason in one line. The first kBroken or kOver is the
  // last call. It must not destroy the watch.
  using Callback = std::function<void(EpochEvent, const std::string&)>;

  // If the daemon can't be reached in spite of the client's retries, the epoch ends after another
  // `reattach`.
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

// The identity of a worker, as given by its agent.
struct WorkerStanding {
  WorkerId id;
  std::string advertise_address;
  bool elastic = false;
  absl::Duration reattach;         // how long to go on while the daemon is away
  net::TlsIdentity identity = {};  // towards other workers, if the job encrypts
};

// Thread-safe; one per process. The incarnation is drawn once, so that all worlds of this process
// belong to one worker.
class Session {
 public:
  Session(WorkerStanding standing, Incarnation incarnation, ClientFactory new_client);

  struct JoinRequest {
    int control_port = 0;
    bool may_defer = false;  // a DeferredPlace is acceptable
    uint64_t commit = 0;     // the newest that this process can restore
    absl::Duration timeout;  // static jobs; in an elastic one the daemon bounds the wait
    // Of the last world.
    bool worked = false;                              // an operation of the script's was completed
    std::string left_for = "";                        // its own error; empty: a reason of others
    uint64_t lost_steps = 0;                          // since `commit`
    absl::Duration lost_time = absl::ZeroDuration();  // the same
  };
  // Blocks until the daemon has formed the next world with this worker in it, or answers otherwise.
  // The world's `members` may call this session, which must outlive it.
  // Errors:
  //   - DeadlineExceeded: not all members came; names what the daemon waits for.
  //   - FailedPrecondition: the job is over or another process took this worker's place.
  //   - Unavailable: the daemon can't be reached.
  //   - Internal: the daemon's answer is invalid.
  absl::StatusOr<JoinAnswer> JoinNextWorld(const JoinRequest& join);

  // The key exchange of one epoch's members; must not outlive the session.
  std::unique_ptr<collectives::KeyExchange> NewKeyExchange(Epoch epoch);

  // See EpochWatch.
  std::unique_ptr<EpochWatch> Watch(Epoch epoch, EpochWatch::Callback on_change);

  // The reporter's requests start as a copy of StallRequest.
  std::unique_ptr<StallReporter> NewStallReporter(StallReporter::Untold untold);
  // A request in this worker's name, without operations.
  pb::ReportStallRequest StallRequest(Epoch epoch) const;

  // Sets the newest commit that rank 0 reports from now on.
  void NoteCommit(uint64_t number);

  // Reports the job's progress to the daemon. OK: `epoch` is the newest and not broken.
  // Errors: those of RendezvousClient::Report.
  absl::Status ReportProgress(rendezvous::client::RendezvousClient& client, Epoch epoch,
                              absl::Duration timeout);
  absl::Status ReportProgress(Epoch epoch, absl::Duration timeout) {
    return ReportProgress(*client(), epoch, timeout);
  }

  // `patience`: for the daemon's silence. Must not outlive the session.
  std::unique_ptr<WorldLease> NewLease(Epoch epoch, absl::Duration patience);

  // Reports that this worker leaves `epoch` cleanly.
  // This and ReportFailure end the connection, unless something else uses it: a daemon that shuts
  // down waits for those that are open. Later calls make another.
  // Errors: those of RendezvousClient::Report.
  absl::Status ReportFinished(Epoch epoch, absl::Duration timeout);

  // Reports that this worker is about to fail; see Failure in rendezvous.proto.
  absl::Status ReportFailure(Epoch epoch, const std::string& message, bool caused_by_peer,
                             absl::Duration timeout);

  const WorkerStanding& standing() const { return standing_; }
  // The newest world that this process knows of; 0 if none.
  Epoch last_epoch() const;

 private:
  // For calls of this object's.
  std::shared_ptr<rendezvous::client::RendezvousClient> client();
  absl::StatusOr<pb::JoinWorldResponse> Join(const pb::JoinWorldRequest& request,
                                             absl::Duration timeout);
  absl::Status ReportAndDisconnect(const pb::ReportRequest& request, absl::Duration timeout);
  absl::StatusOr<std::vector<Peer>> AskForMembers(Epoch epoch, int size);
  void FillIdentity(pb::WorkerIdentity* identity) const;

  const WorkerStanding standing_;
  const Incarnation incarnation_;
  const ClientFactory new_client_;
  mutable absl::Mutex mutex_;
  // nullptr: not connected.
  std::shared_ptr<rendezvous::client::RendezvousClient> client_ ABSL_GUARDED_BY(mutex_);
  Epoch last_epoch_ ABSL_GUARDED_BY(mutex_);
  uint64_t commit_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration committed_ ABSL_GUARDED_BY(mutex_);  // time since boot
};

}  // namespace hvd::worker_runtime::session

#endif  // WORKER_RUNTIME_SESSION_RENDEZVOUS_SESSION_H_
