// The plan of a job: its hosts, processes and addresses, computed from the user's options. All
// errors that can be detected before the first process is started are detected here.
#ifndef LAUNCHER_PLAN_PLAN_H_
#define LAUNCHER_PLAN_PLAN_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/env.h"
#include "base/net/local_network.h"
#include "launcher/cli/options.h"
#include "launcher/discovery/host_source.h"
#include "launcher/spawn/agent_process.h"
#include "launcher/spawn/host_launcher.h"
#include "rehearsal/campaign.h"
#include "rendezvous/membership/membership.h"

namespace hvd::launcher::plan {

// The properties of this machine that a plan depends on.
struct LocalMachine {
  std::string host_name;
  std::vector<net::InterfaceAddress> interfaces;
  int cores = 0;  // usable ones; 0: unknown
  int gpus = 0;   // visible ones
  std::string working_directory;
  std::function<net::NameTable(const std::vector<std::string>&)> resolve;
  std::function<std::string(const std::string&)> source_towards;  // see SourceAddressTowards
};

// Reads the properties of this machine.
// Errors:
//   - Internal: a property can't be read; says which.
absl::StatusOr<LocalMachine> ThisMachine();

using cli::RankRanges;

struct PlannedHost {
  spawn::AgentTarget target;
  int slots = 0;       // in use
  int first_rank = 0;  // static jobs
};

// The part of a plan that only elastic jobs have.
struct ElasticPlan {
  int min_workers = 0;
  int max_workers = 0;  // a very large number if there is no limit
  rendezvous::policy::ElasticSpec spec;
};

// The part of a plan that only rehearsals have.
struct RehearsalPlan {
  rehearsal::Campaign campaign;
  std::string report;  // a file; empty: none
};

struct JobPlan {
  int num_proc = 0;                // elastic: of the first world
  std::vector<PlannedHost> hosts;  // in rank order
  std::optional<ElasticPlan> elastic;
  std::string hosts_from;    // in messages: the scheduler's job; empty: none
  std::string hosts_source;  // in messages: the list's origin; empty: the user, or a script
  std::shared_ptr<discovery::HostSource> source;        // `hosts` is empty if it is dynamic
  std::shared_ptr<const spawn::HostLauncher> launcher;  // for hosts other than this machine
  std::vector<std::string> listen;
  std::vector<std::string> networks;
  std::vector<std::string> command;
  bool restarts = false;    // the command, in each world
  Environment environment;  // of every worker, before the agent adds its own
  std::string working_directory;
  int shared_cores = 0;      // of this machine, among its workers; 0: OMP_NUM_THREADS is left alone
  std::string worker_input;  // the contents of each worker's stdin
  std::string metrics;       // an address to serve them at; empty: none
  RankRanges shown_ranks;    // whose output the terminal shows; empty: all
  std::string job_realm;     // for this job's JobFile; empty: none is written
  absl::Duration start_timeout;
  absl::Duration agent_timeout = absl::Seconds(30);
  bool encrypt_data = false;
  std::optional<RehearsalPlan> rehearsal;
  bool verbose = false;
};

// Checks the hosts of an elastic job without --max-np, which starts a process in each slot.
// Errors:
//   - InvalidArgument: a host has more slots than a machine can have; one line that names it.
absl::Status CheckSlots(const std::vector<rendezvous::membership::HostSlots>& hosts,
                        const JobPlan& plan);

// Decides for each host whether its agent is a child process (this machine) or started by
// `launcher`. Resolves the names that are not obviously local, and adds the results to `names`.
std::vector<PlannedHost> PlaceHosts(const std::vector<rendezvous::membership::HostSlots>& hosts,
                                    const std::shared_ptr<const spawn::HostLauncher>& launcher,
                                    const LocalMachine& machine, net::NameTable& names);

// REQUIRES: options.action is kRunJob.
// Errors: one line that says which host, file, script, network or variable is wrong.
//   - InvalidArgument: it has a wrong value.
//   - NotFound: it does not exist.
absl::StatusOr<JobPlan> MakePlan(const cli::Options& options, const Environment& environment,
                                 const LocalMachine& machine);

// MakePlan on this machine.
// Errors:
//   - Internal: as ThisMachine.
//   - any other: as MakePlan.
absl::StatusOr<JobPlan> MakePlanHere(const cli::Options& options, const Environment& environment);

// Returns a line for each host with its ranks and how it is reached. For --verbose.
std::string PlanTable(const JobPlan& plan);

}  // namespace hvd::launcher::plan

#endif  // LAUNCHER_PLAN_PLAN_H_
