// The execution of a job from its plan to the exit code: rendezvous server, agents on all hosts,
// stop signals, cleanup.
#ifndef LAUNCHER_JOB_JOB_H_
#define LAUNCHER_JOB_JOB_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "base/console/output_sink.h"
#include "launcher/job/agent_fleet.h"
#include "launcher/job/host_search.h"
#include "launcher/job/job_events.h"
#include "launcher/plan/plan.h"
#include "rendezvous/reporting/event_log.h"
#include "rendezvous/server/server.h"

namespace hvd::launcher::job {

// The factories of the parts that a job starts; tests replace them.
struct JobDependencies {
  std::function<absl::StatusOr<std::unique_ptr<rendezvous::server::Server>>(
      rendezvous::server::ServerOptions)>
      start_server;
  StartAgent start_agent;
  // Needed if the plan's source is dynamic: SearchHosts for the plan, or a test's replacement.
  std::function<std::unique_ptr<HostSearch>(OnHostsFound)> search_hosts;
  rendezvous::reporting::EventLog* event_log = nullptr;  // may be null
  // Writes the report of a rehearsal; null: there is no file for it.
  std::function<absl::Status(const std::string& json)> write_report;
};

// Runs the job to its end and returns horovodrun's exit code: that of the verdict; 2 if a host
// could not be used (elastic: no host could be used) and so no worker was started; 128 + signal
// after a stop signal; 70 if a rehearsal was not as promised. On return all started processes have
// ended, and all output has been written or dropped.
//
// The caller posts stop signals to `events`, and must set the OnBroken callback of `output` to post
// there too.
int RunJob(const plan::JobPlan& plan, const JobDependencies& dependencies, JobEventQueue& events,
           console::OutputSink& output);

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_JOB_H_
