// The rendezvous server as a library, for horovodrun, horovod-rendezvousd and cluster schedulers.
// Server serves one job, whose credentials the caller provides. RendezvousServer serves any number
// of jobs at one listener, for schedulers.
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
// Everything here is thread-safe. Callbacks come from the job's thread, one at a time. They must
// not block and must not destroy a job or a server; they may call every other function.
#ifndef RENDEZVOUS_SERVER_SERVER_H_
#define RENDEZVOUS_SERVER_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/env.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/membership/membership.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::pb {
class Fault;
class FaultDone;
}  // namespace hvd::pb

namespace hvd::rendezvous::server {

struct ServerOptions {
  std::string job_id;
  policy::JobSpec job;
  // Numeric "address:port"; port 0 lets the kernel choose. At least one.
  std::vector<std::string> listen;
  // How long an agent or a worker may be silent (stopped, or starved of CPU) while its host still
  // answers.
  absl::Duration agent_timeout = absl::Seconds(30);
  // The result of JobAuthority::IssueForDaemon. Every call must carry its token and a client
  // certificate of its CA.
  security::PeerCredentials credentials;
  // The key from which the epochs' secrets are derived. Empty: a random one.
  std::string secret_key;
  // Borrowed. With a journal the job is resumed from it and can outlive this process: when the
  // server goes away, agents keep their workers for spec.reattach_timeout. Null: no journal.
  journal::Journal* journal = nullptr;
  // Called once, from the server's loop thread, when the job has ended; must not block.
  std::function<void(const membership::Verdict&)> on_finished;
  // Called in the same way for every notice to users, in the order of events. May be null.
  std::function<void(const membership::Notice&)> on_notice;
  // Called when the journal can't be written; no event is applied after that. May be null.
  std::function<void(const absl::Status&)> on_journal_error;
  // An agent's answer to Server::Harm. Called from any thread; must not block. May be null.
  std::function<void(const pb::FaultDone&)> on_fault_done;
};

// A server for one job. Owns a loop thread and the gRPC server. Thread-safe. The destructor stops
// both and waits for them. It ends the streams of attached agents; without a journal these then
// stop their workers.
class Server {
 public:
  // Errors:
  //   - InvalidArgument: an option is not valid; says which.
  //   - Unavailable: an address can't be listened on; says which and why.
  //   - FailedPrecondition: according to its journal, the job has ended.
  //   - Others: those of Journal::Replay.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options,
                                                       Clock& clock = Clock::Real());
  virtual ~Server() = default;

  // The addresses listened on, with their real ports, in the order of the options.
  virtual std::vector<std::string> addresses() const = 0;

  // Ends the job with this exit code. Workers get SIGTERM, and SIGKILL after `grace`. A second call
  // can shorten the grace.
  virtual void RequestStop(std::string reason, int exit_code, absl::Duration grace) = 0;

  // As RequestStop, but the workers may use their world during the grace.
  virtual void Interrupt(std::string reason, int exit_code, absl::Duration grace) = 0;

  // Sends the signal to all workers that have a handler for it.
  virtual void SignalWorkers(int signal) = 0;

  // In a rehearsal: has the host's agent do the harm, and answer by on_fault_done. There is no call
  // of the network that does this: only the process that serves the job can. Returns false if no
  // agent of that host is attached.
  virtual bool Harm(const std::string& host, const pb::Fault& fault) = 0;

  // Elastic jobs: the complete list of hosts that exist now; see HostsDiscovered.
  virtual void ReportHosts(std::vector<membership::HostSlots> hosts) = 0;

  // Ends an elastic job in good order: all hosts drain within `grace`, and the job ends with this
  // exit code when the last worker has left. Only the first call has an effect.
  virtual void EndAtCommit(std::string reason, int exit_code, absl::Duration grace) = 0;

  // Elastic jobs: drains the host, within `grace`.
  virtual void Drain(std::string host, absl::Duration grace, std::string reason) = 0;

  // The state of the job; if its thread hangs, the last known state.
  virtual membership::Membership::View Describe() = 0;

  // How long the job's thread has been busy with its current work. More than moments means that it
  // hangs in a write to the journal.
  virtual absl::Duration BusyFor() = 0;

  // The job's metrics in Prometheus' text format; see reporting/metrics.h.
  virtual std::string Metrics() = 0;
};

// A worker process that the scheduler must start.
struct WorkerStart {
  WorkerId worker;          // identifies it in later calls
  std::string host;         // the name from OfferSlots
  Environment environment;  // variables to add to its environment
};

struct ServedJobOptions {
  std::string job_id;    // empty: a random one
  policy::JobSpec spec;  // leave `expected_hosts` empty: OfferSlots names the hosts

  // Starts a worker process. Set start_worker and stop_worker if the scheduler starts the workers
  // itself, on this machine and as this process's user. Set neither if agents start them, on any
  // machine; the scheduler starts an agent as "horovod-agent --join" with the job's credentials.
  std::function<void(const WorkerStart&)> start_worker;
  // Stops a worker: SIGTERM now, SIGKILL after `grace`. The scheduler must report the exit of every
  // worker that it started (ReportExit), whether stopped or not.
  std::function<void(WorkerId worker, absl::Duration grace)> stop_worker;
  // The slots of this host are free: it was withdrawn, drained or is no longer needed. In a job
  // without start_worker: it was withdrawn, and its agent waits. May be null.
  std::function<void(const std::string& host)> on_host_free;

  // Called once, at the end of the job. May be null, like on_notice.
  std::function<void(const membership::Verdict&)> on_finished;
  std::function<void(const membership::Notice&)> on_notice;
  // The job's journal can't be written. No further event is applied; workers continue to train. The
  // scheduler should destroy the ServedJob, and call AddJob again when the journal can be written.
  // May be null.
  std::function<void(const absl::Status&)> on_journal_error;
};

// A worker process that was started before a restart of the scheduler.
struct EarlierWorker {
  WorkerId worker;
  std::string host;
  int64_t pid = 0;  // as passed to ReportStarted; 0: not reported
};

// A job on a RendezvousServer, which must outlive it. The destructor removes the job from the
// server; no callback comes after it. If the job has not ended and the server has a state
// directory, the job stays there, and agents and workers wait for spec.reattach_timeout until
// AddJob resumes it, in this or a later process. Otherwise the job is over, and the scheduler must
// stop the processes that it started.
class ServedJob {
 public:
  virtual ~ServedJob() = default;

  virtual const std::string& id() const = 0;

  // The job's credentials for agents and workers. Secret.
  virtual const security::PeerCredentials& credentials() const = 0;

  // The workers of a resumed job with start_worker whose state the scheduler must report:
  // - ReportStarted, with the pid: the process still runs;
  // - ReportExit: it has ended;
  // - StartAgain: it was never started.
  // A host rejoins the job when all its workers are reported. It counts as lost if a report is
  // missing after spec.reattach_timeout. The processes are not children of this process; watch them
  // with pidfd_open(2).
  virtual std::vector<EarlierWorker> EarlierWorkers() = 0;

  // Reports that an earlier worker never had a process; start_worker is called for it again.
  // Errors:
  //   - NotFound: it is not one of EarlierWorkers.
  virtual absl::Status StartAgain(WorkerId worker) = 0;

  // Sets the hosts and slots that the job may use. A resumed job uses those of the earlier process
  // until the first call. A host that is new, or named again after it was free, joins; a host that
  // is no longer named is drained. A static job ignores withdrawals once it has started. In a job
  // without start_worker, agents of the named hosts take part, each with the smaller of the offered
  // slots and its own; other agents wait. Before the first call, all agents take part.
  virtual void OfferSlots(const std::vector<membership::HostSlots>& hosts) = 0;

  // Report the start and the exit of a process that start_worker requested. The death of a process
  // that has called hvd.init() is detected directly, without waiting for ReportExit, even while the
  // kernel still frees its memory.
  virtual void ReportStarted(WorkerId worker, int64_t pid) = 0;
  virtual void ReportExit(membership::WorkerExited exit) = 0;

  // Elastic jobs: sets new limits for the size of worlds. Workers beyond the maximum leave at the
  // next commit, so no step is lost. The minimum applies when the next world forms.
  // Errors:
  //   - InvalidArgument: the numbers contradict each other.
  //   - FailedPrecondition: the job is not elastic.
  virtual absl::Status SetLimits(int min_workers, int max_workers) = 0;

  // See Server.
  virtual void Drain(std::string host, absl::Duration grace, std::string reason) = 0;
  virtual void RequestStop(std::string reason, int exit_code, absl::Duration grace) = 0;
  virtual membership::Membership::View Describe() = 0;

  // This job's metrics in Prometheus' text format; see RendezvousServer::Metrics.
  virtual std::string Metrics() = 0;
};

struct RendezvousServerOptions {
  std::vector<std::string> listen;  // as in ServerOptions
  // A directory, used by this server only, that keeps the jobs beyond this process: a later server
  // with the same directory resumes them, with the same credentials and at the same addresses.
  // Created if missing. Empty: jobs end with this process.
  std::string state_dir;
};

// A job in the state directory that was not added to this server.
struct KeptJob {
  std::string id;  // empty if it can't be read
  policy::JobSpec spec;
  bool starts_workers = false;  // true: it had start_worker; false: agents start its workers
  std::optional<membership::Verdict> ended;  // its verdict, if it has ended
  absl::Status problem;                      // not OK: why the job can't be read
};

// A server for any number of jobs. Owns the gRPC server.
//
// Security: one CA issues the server's certificate and one client certificate for the hosts of all
// jobs. Jobs are separated by tokens: one per job, checked in every call. The certificate admits
// its holder to the server, the token selects the job, and connections between workers also prove
// knowledge of the epoch's secret. A CA or a certificate per job would not keep out any process
// that has the token, and roots can't be added to a running TLS server.
class RendezvousServer {
 public:
  // Errors:
  //   - InvalidArgument: an address is not numeric, or the state directory can't be used.
  //   - Unavailable: an address can't be listened on; says which and why.
  //   - FailedPrecondition: another process uses the state directory, or its server had other
  //     addresses.
  //   - DataLoss: the state directory is damaged; gives the remedy.
  //   - Internal: OpenSSL failed, or the state directory can't be written.
  static absl::StatusOr<std::unique_ptr<RendezvousServer>> Start(
      const RendezvousServerOptions& options, Clock& clock = Clock::Real());
  virtual ~RendezvousServer() = default;

  // See Server.
  virtual const std::vector<std::string>& addresses() const = 0;

  // Adds a new job; or resumes the job of this id from the state directory, with its membership:
  // its agents attach again, and its workers repeat their calls (see ServedJob::EarlierWorkers).
  // Errors:
  //   - InvalidArgument: the spec is not valid, or only one of start_worker and stop_worker is set.
  //   - AlreadyExists: the server has a job of this id.
  //   - FailedPrecondition: the job in the state directory has another spec, differs in whether
  //     start_worker is set, or has ended; says which.
  //   - DataLoss: the job in the state directory is damaged; gives the remedy.
  //   - Internal, ResourceExhausted: no certificate or no socket can be made, or the state
  //     directory can't be written.
  virtual absl::StatusOr<std::unique_ptr<ServedJob>> AddJob(ServedJobOptions options) = 0;

  // The jobs in the state directory that were not added to this server. The scheduler should add or
  // forget each.
  virtual std::vector<KeptJob> KeptJobs() = 0;

  // Removes a job from the state directory. Its agents and workers that still wait give up.
  // Errors:
  //   - NotFound: there is no job of this id.
  //   - FailedPrecondition: the job is on the server; RequestStop ends it.
  //   - Internal: the job's files can't be removed.
  virtual absl::Status ForgetJob(const std::string& id) = 0;

  // The metrics of all jobs in Prometheus' text format; see reporting/metrics.h.
  virtual std::string Metrics() = 0;
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_SERVER_H_
