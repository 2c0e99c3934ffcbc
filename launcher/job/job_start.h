// The startup steps of a job before its first agent: secrets, the daemon, and bootstrap messages.
#ifndef LAUNCHER_JOB_JOB_START_H_
#define LAUNCHER_JOB_JOB_START_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/job/job_file.h"
#include "launcher/plan/plan.h"
#include "rendezvous/security/job_credentials.h"
#include "rendezvous/server/server.h"

namespace hvd::launcher::job {

struct StartedDaemon {
  std::string job_id;
  std::unique_ptr<rendezvous::security::JobAuthority> authority;
  std::unique_ptr<rendezvous::server::Server> server;
};

// Errors: those of JobAuthority::Create and Server::Start.
absl::StatusOr<StartedDaemon> StartDaemon(
    const plan::JobPlan& plan,
    const std::function<absl::StatusOr<std::unique_ptr<rendezvous::server::Server>>(
        rendezvous::server::ServerOptions)>& start_server,
    std::function<void(const rendezvous::membership::Verdict&)> on_finished,
    std::function<void(const rendezvous::membership::Notice&)> on_notice,
    std::function<void(const pb::FaultDone&)> on_fault_done = nullptr);

// Makes the file for `horovodrun status` and `horovodrun drain`. Returns null if the plan has no
// realm.
// Errors: those of JobFile::Write and JobAuthority::IssueForHost.
absl::StatusOr<std::unique_ptr<JobFile>> WriteJobFile(const plan::JobPlan& plan,
                                                      rendezvous::security::JobAuthority& authority,
                                                      const std::string& job_id,
                                                      const std::vector<std::string>& addresses);

// Errors: those of JobAuthority::IssueForHost.
absl::StatusOr<pb::AgentBootstrap> MakeBootstrap(const plan::JobPlan& plan,
                                                 const plan::PlannedHost& host,
                                                 rendezvous::security::JobAuthority& authority,
                                                 const std::string& job_id,
                                                 const std::vector<std::string>& addresses);

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_JOB_START_H_
