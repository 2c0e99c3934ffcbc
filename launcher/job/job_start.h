// What a job needs before its first agent: secrets, a daemon that listens, and each agent's
// message.
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

namespace hvd {

struct StartedDaemon {
  std::string job_id;
  std::unique_ptr<JobAuthority> authority;
  std::unique_ptr<Server> server;
};

// Errors as JobAuthority::Create and Server::Start.
absl::StatusOr<StartedDaemon> StartDaemon(
    const JobPlan& plan,
    const std::function<absl::StatusOr<std::unique_ptr<Server>>(ServerOptions)>& start_server,
    std::function<void(const Verdict&)> on_finished, std::function<void(const Notice&)> on_notice);

// For `horovodrun status` and its like. Null if the plan names no directory; errors as
// JobFile::Write and JobAuthority::IssueForHost.
absl::StatusOr<std::unique_ptr<JobFile>> WriteJobFile(const JobPlan& plan, JobAuthority& authority,
                                                      const std::string& job_id,
                                                      const std::vector<std::string>& addresses);

// Errors as JobAuthority::IssueForHost.
absl::StatusOr<pb::AgentBootstrap> MakeBootstrap(const JobPlan& plan, const PlannedHost& host,
                                                 JobAuthority& authority, const std::string& job_id,
                                                 const std::vector<std::string>& addresses);

}  // namespace hvd

#endif  // LAUNCHER_JOB_JOB_START_H_
