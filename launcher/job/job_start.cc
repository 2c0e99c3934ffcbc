#include "launcher/job/job_start.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/utf8.h"
#include "base/version.h"
#include "rendezvous/security/credentials_message.h"

namespace hvd::launcher::job {
namespace {

// The daemon's start timeout is longer than the launcher's: the launcher can explain better why the
// start failed, so it should report first.
constexpr absl::Duration kDaemonMargin = absl::Seconds(5);

}  // namespace

absl::StatusOr<StartedDaemon> StartDaemon(
    const plan::JobPlan& plan,
    const std::function<absl::StatusOr<std::unique_ptr<rendezvous::server::Server>>(
        rendezvous::server::ServerOptions)>& start_server,
    std::function<void(const rendezvous::membership::Verdict&)> on_finished,
    std::function<void(const rendezvous::membership::Notice&)> on_notice,
    std::function<void(const pb::FaultDone&)> on_fault_done) {
  StartedDaemon daemon;
  daemon.job_id = rendezvous::security::NewJobId();
  ASSIGN_OR_RETURN(daemon.authority, rendezvous::security::JobAuthority::Create(daemon.job_id));
  rendezvous::server::ServerOptions options;
  options.job_id = daemon.job_id;
  options.job.min_workers = plan.num_proc;
  options.job.max_workers = plan.num_proc;
  if (plan.elastic.has_value()) {
    options.job.min_workers = plan.elastic->min_workers;
    options.job.max_workers = plan.elastic->max_workers;
    options.job.start_workers = plan.num_proc;
    options.job.elastic = plan.elastic->spec;
  }
  for (const plan::PlannedHost& host : plan.hosts) {
    options.job.expected_hosts.push_back({host.target.host, host.slots});
  }
  options.job.start_timeout = plan.start_timeout + kDaemonMargin;
  options.job.encrypt_data = plan.encrypt_data;
  options.listen = plan.listen;
  options.agent_timeout = plan.agent_timeout;
  ASSIGN_OR_RETURN(options.credentials, daemon.authority->IssueForDaemon());
  options.on_finished = std::move(on_finished);
  options.on_notice = std::move(on_notice);
  options.on_fault_done = std::move(on_fault_done);
  ASSIGN_OR_RETURN(daemon.server, start_server(std::move(options)));
  return daemon;
}

absl::StatusOr<std::unique_ptr<JobFile>> WriteJobFile(const plan::JobPlan& plan,
                                                      rendezvous::security::JobAuthority& authority,
                                                      const std::string& job_id,
                                                      const std::vector<std::string>& addresses) {
  if (plan.job_realm.empty()) return nullptr;
  ASSIGN_OR_RETURN(rendezvous::security::PeerCredentials issued,
                   authority.IssueForHost("horovodrun status"));
  pb::JobFile job;
  job.set_job_id(job_id);
  job.set_pid(getpid());
  for (const std::string& address : addresses) job.add_addresses(address);
  *job.mutable_credentials() = rendezvous::security::ToMessage(issued);
  job.set_command(text::ToUtf8(absl::StrJoin(plan.command, " ")));
  return JobFile::Write(plan.job_realm, job);
}

absl::StatusOr<pb::AgentBootstrap> MakeBootstrap(const plan::JobPlan& plan,
                                                 const plan::PlannedHost& host,
                                                 rendezvous::security::JobAuthority& authority,
                                                 const std::string& job_id,
                                                 const std::vector<std::string>& addresses) {
  ASSIGN_OR_RETURN(rendezvous::security::PeerCredentials issued,
                   authority.IssueForHost(host.target.host));
  pb::AgentBootstrap bootstrap;
  bootstrap.set_version(kVersion);
  bootstrap.set_job_id(job_id);
  bootstrap.set_host(host.target.host);
  bootstrap.set_slots(host.slots);
  *bootstrap.mutable_credentials() = rendezvous::security::ToMessage(issued);
  for (const std::string& address : addresses) bootstrap.add_daemon_addresses(address);
  pb::JobCommand& command = *bootstrap.mutable_command();
  for (const std::string& arg : plan.command) command.add_argv(arg);
  command.set_restarts(plan.restarts);
  command.mutable_environment()->insert(plan.environment.begin(), plan.environment.end());
  command.set_working_directory(plan.working_directory);
  command.set_input(plan.worker_input);
  for (const std::string& network : plan.networks) bootstrap.add_networks(network);
  bootstrap.set_is_rehearsal(plan.rehearsal.has_value());
  return bootstrap;
}

}  // namespace hvd::launcher::job
