// The rendezvous server as a library, for horovodrun, horovod-rendezvousd and cluster schedulers.
// Server is one job with its owner's credentials; RendezvousServer is any number of jobs behind one
// listener, for schedulers.
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
// Everything here is thread-safe. Callbacks come from a job's own thread, one at a time. They must
// not block and must not destroy a job or a server, but may call everything else.
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

namespace hvd::rendezvous::server {

struct ServerOptions {
  std::string job_id;
  policy::JobSpec job;
  // Numeric "address:port"; port 0 lets the kernel choose. At least one.
  std::vector<std::string> listen;
  // How long an agent, or a worker, may be silent while its host answers (stopped or starved of
  // CPU).
  absl::Duration agent_timeout = absl::Seconds(30);
  // The result of JobAuthority::IssueForDaemon. Every call needs its token and a certificate of its
  // CA.
  security::PeerCredentials credentials;
  // The epochs' secrets are derived from this. Empty: something random.
  std::string secret_key;
  // Borrowed. The job is resumed from it and outlives this process: agents keep their workers for a
  // while when the server goes. Null: no journal.
  journal::Journal* journal = nullptr;
  // Called once, from the server's loop thread, when the job has ended; must not block.
  std::function<void(const membership::Verdict&)> on_finished;
  // The same for every notice to users, in the order of events. May be null.
  std::function<void(const membership::Notice&)> on_notice;
  // The journal can't be written: from now on no event is applied. May be null.
  std::function<void(const absl::Status&)> on_journal_error;
};

// Owns a loop thread and the gRPC server. Thread-safe. The destructor stops everything and waits
// for it. Agents that are still attached see their stream end, which ends their workers, unless
// there is a journal.
class Server {
 public:
  // Errors:
  //   - InvalidArgument: the options can't work.
  //   - Unavailable: an address can't be listened on; says which and why.
  //   - FailedPrecondition: by its journal, the job has ended.
  //   - Others: those of Journal::Replay.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options,
                                                       Clock& clock = Clock::Real());
  virtual ~Server() = default;

  // The addresses listened on, with their real ports, in the options' order.
  virtual std::vector<std::string> addresses() const = 0;

  // Ends the job with this exit code. Workers get SIGTERM, after `grace` SIGKILL. A second call
  // shortens the grace.
  virtual void RequestStop(std::string reason, int exit_code, absl::Duration grace) = 0;

  // Elastic jobs: all hosts that exist now.
  virtual void ReportHosts(std::vector<membership::HostSlots> hosts) = 0;

  // Elastic jobs: drains the host, within `grace`.
  virtual void Drain(std::string host, absl::Duration grace, std::string reason) = 0;

  // The job now, or its last answer if it hangs.
  virtual membership::Membership::View Describe() = 0;

  // How long the job's thread has been busy with its current work; more than moments: it hangs, on
  // a disk.
  virtual absl::Duration BusyFor() = 0;

  // The job in Prometheus' text format; the names are in metrics.h.
  virtual std::string Metrics() = 0;
};

// A worker process that a job wants to run.
struct WorkerStart {
  WorkerId worker;          // its name from now on
  std::string host;         // as offered
  Environment environment;  // what it must find in its environment, besides what is its own
};

struct ServedJobOptions {
  std::string job_id;    // empty: a random one
  policy::JobSpec spec;  // `expected_hosts` stays empty: they are offered

  // Starts processes. Either the scheduler does, on the machine and as the user of this process:
  // then both functions are set. Or agents do, on any machine, which the scheduler starts as
  // "horovod-agent --join" with the job's credentials: then neither is set.
  std::function<void(const WorkerStart&)> start_worker;
  // SIGTERM now, SIGKILL after `grace`. Every worker that was started must be reported to have
  // exited, stopped or not.
  std::function<void(WorkerId worker, absl::Duration grace)> stop_worker;
  // The job has left this host, which was withdrawn, drained or is no longer needed: its slots are
  // free. Without start_worker: it was withdrawn, and its agent waits. May be null.
  std::function<void(const std::string& host)> on_host_free;

  // Called once, at the end. May be null, as the next.
  std::function<void(const membership::Verdict&)> on_finished;
  std::function<void(const membership::Notice&)> on_notice;
  // The job's journal can't be written: nothing is decided from now on, and workers train on. The
  // scheduler destroys the job, and adds it again once it can be written. May be null.
  std::function<void(const absl::Status&)> on_journal_error;
};

// A process that an earlier scheduler was asked to start.
struct EarlierWorker {
  WorkerId worker;
  std::string host;
  int64_t pid = 0;  // as it has reported; 0: it has not
};

// A job on a RendezvousServer, which must outlive it. The destructor removes the job from the
// server; no callback comes after it. Without a state directory, and if the job has ended, that is
// the end of it: the scheduler must stop the processes that it started. Else the job stays in the
// directory, and agents and workers wait for spec.reattach_timeout until it is added again, by this
// or a later process.
class ServedJob {
 public:
  virtual ~ServedJob() = default;

  virtual const std::string& id() const = 0;

  // The credentials of agents and workers for this job; secret.
  virtual const security::PeerCredentials& credentials() const = 0;

  // Of a job that was added again, with start_worker: the processes of which it must be said
  // whether they still run (ReportStarted, with the pid), have ended (ReportExit), or have never
  // been there (StartAgain). A host takes part again when that was said of all its processes; what
  // is not said within spec.reattach_timeout makes its host a lost one. They are no children of
  // this process; see pidfd_open(2).
  virtual std::vector<EarlierWorker> EarlierWorkers() = 0;

  // An earlier worker has no process, and never had one: start_worker is called for it again.
  // Errors:
  //   - NotFound: it is not one of EarlierWorkers.
  virtual absl::Status StartAgain(WorkerId worker) = 0;

  // All hosts and slots that the job may use now; until the first call, those of an earlier
  // scheduler. A host that is named for the first time, or again after it was free, joins; one that
  // is no longer named is drained. In a job that is not elastic, hosts can't be withdrawn once it
  // has started. Without start_worker these are the hosts whose agents may take part, each with the
  // smaller of the two numbers of slots; other agents wait. Without any call all agents take part.
  virtual void OfferSlots(const std::vector<membership::HostSlots>& hosts) = 0;

  // The fate of a process that start_worker asked for. If the process has called hvd.init(), its
  // death is noticed earlier, at once however much memory it has: the others go on meanwhile.
  virtual void ReportStarted(WorkerId worker, int64_t pid) = 0;
  virtual void ReportExit(membership::WorkerExited exit) = 0;

  // Elastic jobs: from now on worlds have so many workers. Those beyond the maximum leave at the
  // next commit, without a step being lost; the minimum counts when the next world forms. Errors:
  //   - InvalidArgument: the numbers contradict each other.
  //   - FailedPrecondition: the job is not elastic.
  virtual absl::Status SetLimits(int min_workers, int max_workers) = 0;

  // See Server.
  virtual void Drain(std::string host, absl::Duration grace, std::string reason) = 0;
  virtual void RequestStop(std::string reason, int exit_code, absl::Duration grace) = 0;
  virtual membership::Membership::View Describe() = 0;

  // See RendezvousServer; of this job alone.
  virtual std::string Metrics() = 0;
};

struct RendezvousServerOptions {
  std::vector<std::string> listen;  // as in ServerOptions
  // A directory, of this server alone, in which jobs outlive this process: a later server with the
  // same directory goes on with them, with the same credentials and at the same addresses. Made if
  // it is missing. Empty: jobs end with this process.
  std::string state_dir;
};

// A job in the state directory that is not on the server.
struct KeptJob {
  std::string id;  // empty if not even that can be read
  policy::JobSpec spec;
  bool starts_workers = false;               // it had start_worker; else agents start its processes
  std::optional<membership::Verdict> ended;  // it has, and was not removed since
  absl::Status problem;                      // it can't be read, and why
};

// Owns the gRPC server. One authority has issued the server's certificate and that of all jobs'
// hosts. The tokens separate the jobs: one per job, checked with every call. A certificate gets its
// holder to the server, the token selects the job, and a job's data connections also prove
// knowledge of the epoch's secret. An authority or a certificate per job would keep out no process
// that the token admits, and roots can't be added to a TLS server that is already up.
class RendezvousServer {
 public:
  // Errors:
  //   - InvalidArgument, Unavailable: those of Server::Start; or the state directory can't be used.
  //   - FailedPrecondition: another process uses the state directory, or its server listened
  //     elsewhere.
  //   - DataLoss: what is in it is damaged; gives the remedy.
  //   - Internal: OpenSSL failed, or the directory can't be written.
  static absl::StatusOr<std::unique_ptr<RendezvousServer>> Start(
      const RendezvousServerOptions& options, Clock& clock = Clock::Real());
  virtual ~RendezvousServer() = default;

  // See Server.
  virtual const std::vector<std::string>& addresses() const = 0;

  // Begins a job; or goes on with the one of this id in the state directory, with the membership
  // that it had: its agents attach again, its workers call again (see ServedJob::EarlierWorkers).
  // Errors:
  //   - InvalidArgument: the spec can't work, or only one of start_worker and stop_worker is set.
  //   - AlreadyExists: there is a job of this id on the server.
  //   - FailedPrecondition: the job in the state directory has another spec, or other processes
  //     start its workers, or it has ended; says how.
  //   - DataLoss: that job is damaged; gives the remedy.
  //   - Internal, ResourceExhausted: no certificate or no socket can be made, or the state
  //     directory can't be written.
  virtual absl::StatusOr<std::unique_ptr<ServedJob>> AddJob(ServedJobOptions options) = 0;

  // The jobs in the state directory that are not on the server: those to add again or to forget.
  virtual std::vector<KeptJob> KeptJobs() = 0;

  // Removes a job from the state directory. Agents and workers of it that still wait give up.
  // Errors:
  //   - NotFound: there is none of this id.
  //   - FailedPrecondition: it is on the server: RequestStop ends it.
  //   - Internal: it can't be removed.
  virtual absl::Status ForgetJob(const std::string& id) = 0;

  // All jobs, in Prometheus' text format; the names are in metrics.h.
  virtual std::string Metrics() = 0;
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_SERVER_H_
