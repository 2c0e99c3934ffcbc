// The rendezvous server as a library: what horovodrun, horovod-rendezvousd and cluster schedulers
// embed. Server is one job whose owner has its own credentials; RendezvousServer is any number of
// jobs behind one listener, for schedulers.
//
//   auto server = RendezvousServer::Start({"127.0.0.1:0"});
//   ServedJobOptions options;
//   options.spec.min_workers = 1;  // to 4, and so on
//   options.start_worker = [](const WorkerStart& start) { ... fork, with start.environment ... };
//   options.stop_worker = [](WorkerId worker, absl::Duration grace) { ... SIGTERM, later SIGKILL };
//   auto job = (*server)->AddJob(options);
//   (*job)->OfferSlots({{"localhost", 4}});
//   ... (*job)->ReportExit(...) for each process that has ended ...
//
// Everything here is thread-safe. Callbacks come from a job's own thread, one at a time; they must
// not block and must not destroy a job or a server, but may call everything else.
#ifndef RENDEZVOUS_SERVER_SERVER_H_
#define RENDEZVOUS_SERVER_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/env.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/membership/membership.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::rendezvous::server {

struct ServerOptions {
  std::string job_id;
  policy::JobSpec job;
  // Numeric "address:port"; port 0 lets the kernel choose. At least one.
  std::vector<std::string> listen;
  // How long an agent, or a worker, may be silent while its host answers: stopped, or starved.
  absl::Duration agent_timeout = absl::Seconds(30);
  // As issued by JobAuthority::IssueForDaemon. Every call needs its token and a certificate of its
  // CA.
  security::PeerCredentials credentials;
  // What epochs' secrets are made of. Empty: something random.
  std::string secret_key;
  // Borrowed; the job is taken up from it, and from then on survives this process: agents keep
  // their workers for a while when the server goes. Null: nothing is kept.
  journal::Journal* journal = nullptr;
  // Called once, from the server's loop thread, when the job has ended; must not block.
  std::function<void(const membership::Verdict&)> on_finished;
  // The same for everything that people want to know meanwhile, in the order of happening. May be
  // null.
  std::function<void(const membership::Notice&)> on_notice;
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
  virtual void ReportHosts(std::vector<membership::HostSlots> hosts) = 0;

  // Elastic jobs: has the host leave in good order, within `grace`.
  virtual void Drain(std::string host, absl::Duration grace, std::string reason) = 0;

  // As of now, or as it was when the job last answered, if it hangs.
  virtual membership::Membership::View Describe() = 0;

  // How long the job's thread has been at what it does now; more than moments: it hangs, on a disk.
  virtual absl::Duration BusyFor() = 0;

  // The job in Prometheus' text format; the names are in metrics.h.
  virtual std::string Metrics() = 0;
};

// A worker process that a job wants to run.
struct WorkerStart {
  WorkerId worker;          // to name it by from now on
  std::string host;         // as offered
  Environment environment;  // what it must find in its environment, besides what is its own
};

struct ServedJobOptions {
  std::string job_id;    // empty: a random one
  policy::JobSpec spec;  // `expected_hosts` stays empty: they are offered

  // Who starts processes. Either the scheduler does, on the machine and as the user that this
  // process runs on: then both are set. Or agents do, on any machine, which the scheduler starts as
  // "horovod-agent --join" with the job's credentials: then neither is.
  std::function<void(const WorkerStart&)> start_worker;
  // SIGTERM now, SIGKILL after `grace`. Every worker that was started must be reported to have
  // exited, whether it was stopped or not.
  std::function<void(WorkerId worker, absl::Duration grace)> stop_worker;
  // The job has left this host, which was withdrawn, drained or is not needed any more: its slots
  // are free. May be null.
  std::function<void(const std::string& host)> on_host_free;

  // Once, at the end. May be null, as the next.
  std::function<void(const membership::Verdict&)> on_finished;
  std::function<void(const membership::Notice&)> on_notice;
};

// A job on a RendezvousServer, which must outlive it. The destructor takes the job off the server;
// no callback comes after it. What it had started is the scheduler's to stop.
class ServedJob {
 public:
  virtual ~ServedJob() = default;

  virtual const std::string& id() const = 0;

  // What agents and workers need to take part in this job, and a secret.
  virtual const security::PeerCredentials& credentials() const = 0;

  // The hosts and slots that the job may use now, all of them. A host that is named for the first
  // time, or again after it was free, joins; one that is not named any more is drained. Only for
  // jobs with start_worker; in a job that is not elastic hosts can't be withdrawn.
  virtual void OfferSlots(const std::vector<membership::HostSlots>& hosts) = 0;

  // What became of a process that start_worker asked for. That it dies is noticed before that, at
  // once however much memory it has, if it has called hvd.init(): the others go on meanwhile.
  virtual void ReportStarted(WorkerId worker, int64_t pid) = 0;
  virtual void ReportExit(membership::WorkerExited exit) = 0;

  // As Server's.
  virtual void Drain(std::string host, absl::Duration grace, std::string reason) = 0;
  virtual void RequestStop(std::string reason, int exit_code, absl::Duration grace) = 0;
  virtual membership::Membership::View Describe() = 0;

  // As RendezvousServer's, of this job alone.
  virtual std::string Metrics() = 0;
};

// Owns the gRPC server, and an authority that its own certificate and those of all jobs' hosts come
// from. It is the tokens that tell jobs apart, one a job, checked with every call: a certificate
// gets its holder to the door, the token decides which job's door opens, and a job's data
// connections prove knowledge of the epoch's secret on top. An authority per job would keep out
// nobody whom the token lets in, and roots can't be added to a TLS server that is already up.
class RendezvousServer {
 public:
  // `listen` as in ServerOptions.
  //   InvalidArgument, Unavailable: as Server::Start.   Internal: OpenSSL failed.
  static absl::StatusOr<std::unique_ptr<RendezvousServer>> Start(
      const std::vector<std::string>& listen, Clock& clock = Clock::Real());
  virtual ~RendezvousServer() = default;

  // As Server's.
  virtual const std::vector<std::string>& addresses() const = 0;

  // Begins a job.
  //   InvalidArgument: a spec that can't work, or only one of start_worker and stop_worker.
  //   AlreadyExists: there is a job of this id.   Internal, ResourceExhausted: no certificate or no
  //   socket to be had.
  virtual absl::StatusOr<std::unique_ptr<ServedJob>> AddJob(ServedJobOptions options) = 0;

  // All jobs, in Prometheus' text format; the names are in metrics.h.
  virtual std::string Metrics() = 0;
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_SERVER_H_
