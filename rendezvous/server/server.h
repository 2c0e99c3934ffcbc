// The rendezvous server of one job: what horovodrun, horovod-rendezvousd and a cluster scheduler
// embed.
#ifndef RENDEZVOUS_SERVER_SERVER_H_
#define RENDEZVOUS_SERVER_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/membership/membership.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd {

struct ServerOptions {
  std::string job_id;
  JobSpec job;
  // Numeric "address:port"; port 0 lets the kernel choose. At least one.
  std::vector<std::string> listen;
  // As issued by JobAuthority::IssueForDaemon. Every call needs its token and a certificate of its
  // CA.
  PeerCredentials credentials;
  // What epochs' secrets are made of. Empty: something random.
  std::string secret_key;
  // Borrowed; the job is taken up from it, and from then on survives this process: agents keep
  // their workers for a while when the server goes. Null: nothing is kept.
  Journal* journal = nullptr;
  // Called once, from the server's loop thread, when the job has ended; must not block.
  std::function<void(const Verdict&)> on_finished;
  // The same for everything that people want to know meanwhile, in the order of happening. May be
  // null.
  std::function<void(const Notice&)> on_notice;
  // The journal can't be written: from now on nothing is decided. May be null.
  std::function<void(const absl::Status&)> on_journal_error;
};

// Owns a loop thread and the gRPC server. Thread-safe. The destructor stops everything and waits
// for it; agents that are still attached see their stream end, which ends their workers, unless
// there is a journal.
class Server {
 public:
  // InvalidArgument: options that can't work.   Unavailable: an address can't be listened on; says
  // which and why.   FailedPrecondition: by its journal, the job has ended.   Others as
  // Journal::Replay.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options,
                                                       Clock& clock = Clock::Real());
  virtual ~Server() = default;

  // The addresses listened on, with their real ports, in the options' order.
  virtual std::vector<std::string> addresses() const = 0;

  // Ends the job with this exit code; workers get SIGTERM, after `grace` SIGKILL. A second call
  // shortens the grace.
  virtual void RequestStop(std::string reason, int exit_code, absl::Duration grace) = 0;

  // Elastic jobs: these are the hosts that there are now, all of them.
  virtual void ReportHosts(std::vector<HostSlots> hosts) = 0;

  // Elastic jobs: has the host leave in good order, within `grace`.
  virtual void Drain(std::string host, absl::Duration grace, std::string reason) = 0;

  virtual Membership::View Describe() = 0;
};

}  // namespace hvd

#endif  // RENDEZVOUS_SERVER_SERVER_H_
