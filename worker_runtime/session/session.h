// A worker's standing with the rendezvous daemon, from its first join to its last word.
#ifndef WORKER_RUNTIME_SESSION_SESSION_H_
#define WORKER_RUNTIME_SESSION_SESSION_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "collectives/key_exchange.h"
#include "rendezvous/client/rendezvous_client.h"
#include "worker_runtime/session/world.h"

namespace hvd {

// Makes a client of its own for each user, so that one can be cancelled without the others.
using ClientFactory = std::function<std::unique_ptr<RendezvousClient>()>;

// Waits on a thread of its own for the end of one epoch. The destructor stops the wait and joins
// the thread.
class EpochWatch {
 public:
  // `on_change(reason)` is called at most once, from the watch's thread, when the daemon says that
  // the epoch is broken or the job over, or when it can't be reached for longer than the client's
  // retries last. It must not destroy the watch.
  EpochWatch(std::unique_ptr<RendezvousClient> client, pb::WatchEpochRequest request,
             std::function<void(std::string)> on_change);
  ~EpochWatch();

 private:
  void Run(const pb::WatchEpochRequest& request);

  const std::unique_ptr<RendezvousClient> client_;
  const std::function<void(std::string)> on_change_;
  std::thread thread_;
};

// Thread-safe; one per process. The incarnation is drawn once, so that all worlds of this process
// belong to one worker.
class Session {
 public:
  // `worker_id` and `advertise_address` as the agent gave them.
  Session(WorkerId worker_id, Incarnation incarnation, std::string advertise_address,
          ClientFactory new_client);

  // Blocks until the daemon has formed the next world with this worker in it.
  //   DeadlineExceeded: not all members came; says whom the daemon waits for.
  //   FailedPrecondition: the job is over or another process took this worker's place.
  //   Unavailable: the daemon can't be reached.   Internal: the daemon's answer makes no sense.
  absl::StatusOr<WorkerWorld> JoinNextWorld(int control_port, absl::Duration timeout);

  // The exchange of one epoch's members; must not outlive the session.
  std::unique_ptr<KeyExchange> NewKeyExchange(Epoch epoch);

  // See EpochWatch.
  std::unique_ptr<EpochWatch> Watch(Epoch epoch, std::function<void(std::string)> on_change);

  // This worker leaves `epoch` in good order.   Errors as RendezvousClient::Report.
  absl::Status ReportFinished(Epoch epoch, absl::Duration timeout);

  // This worker is about to fail; see Failure in rendezvous.proto.
  absl::Status ReportFailure(Epoch epoch, const std::string& message, bool caused_by_peer,
                             absl::Duration timeout);

  const std::string& advertise_address() const { return advertise_address_; }

 private:
  void FillIdentity(pb::WorkerIdentity* identity) const;

  const WorkerId worker_id_;
  const Incarnation incarnation_;
  const std::string advertise_address_;
  const ClientFactory new_client_;
  const std::unique_ptr<RendezvousClient> client_;
  Epoch last_epoch_;
};

}  // namespace hvd

#endif  // WORKER_RUNTIME_SESSION_SESSION_H_
