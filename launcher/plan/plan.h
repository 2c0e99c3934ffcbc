// From what the user asked for to what will be started where: everything that can be found wrong
// before the first process is started is found here.
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
#include "rendezvous/membership/membership.h"

namespace hvd::launcher::plan {

// What a plan depends on beside the command line.
struct LocalMachine {
  std::string host_name;
  std::vector<net::InterfaceAddress> interfaces;
  int cores = 0;  // usable ones; 0: not known
  std::string working_directory;
  std::function<net::NameTable(const std::vector<std::string>&)> resolve;
  std::function<std::string(const std::string&)> source_towards;  // see SourceAddressTowards
};

// This one.   Internal: the system does not say; says what.
absl::StatusOr<LocalMachine> ThisMachine();

struct PlannedHost {
  spawn::AgentTarget target;
  int slots = 0;       // in use
  int first_rank = 0;  // static jobs
};

// What elastic jobs have beside.
struct ElasticPlan {
  int min_workers = 0;
  int max_workers = 0;  // very many if there is no limit
  rendezvous::policy::ElasticSpec spec;
};

struct JobPlan {
  int num_proc = 0;                // elastic: of the first world
  std::vector<PlannedHost> hosts;  // in rank order
  std::optional<ElasticPlan> elastic;
  std::shared_ptr<discovery::HostSource> source;        // of a dynamic one `hosts` is empty
  std::shared_ptr<const spawn::HostLauncher> launcher;  // for hosts other than this machine
  std::vector<std::string> listen;
  std::vector<std::string> networks;
  std::vector<std::string> command;
  Environment environment;  // of every worker, before the agent adds its own
  std::string working_directory;
  int shared_cores = 0;      // of this machine, among its workers; 0: OMP_NUM_THREADS is left alone
  std::string worker_input;  // what each worker finds on its stdin
  std::string metrics;       // an address to serve them at; empty: none
  std::string job_realm;     // for this job's JobFile; empty: none is written
  absl::Duration start_timeout;
  absl::Duration agent_timeout = absl::Seconds(30);
  bool encrypt_data = false;
  bool verbose = false;
};

// How each host is reached: by `launcher`, or as a child process. Asks the resolver for names that
// are not clearly this machine's own; what it says goes into `names`.
std::vector<PlannedHost> PlaceHosts(const std::vector<rendezvous::membership::HostSlots>& hosts,
                                    const std::shared_ptr<const spawn::HostLauncher>& launcher,
                                    const LocalMachine& machine, net::NameTable& names);

// REQUIRES: options.action is kRunJob.
//   InvalidArgument, NotFound: one line that says which host, file, script, network or variable is
//   wrong.
absl::StatusOr<JobPlan> MakePlan(const cli::Options& options, const Environment& environment,
                                 const LocalMachine& machine);

// MakePlan on this machine.   Also Internal: as ThisMachine.
absl::StatusOr<JobPlan> MakePlanHere(const cli::Options& options, const Environment& environment);

// A line for each host: its ranks and how it is reached. For --verbose.
std::string PlanTable(const JobPlan& plan);

}  // namespace hvd::launcher::plan

#endif  // LAUNCHER_PLAN_PLAN_H_
