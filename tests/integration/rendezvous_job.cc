#include "tests/integration/rendezvous_job.h"

#include <utility>

#include "base/version.h"
#include "gtest/gtest.h"
#include "rendezvous/client/grpc_rendezvous_client.h"

namespace hvd {

RendezvousJob::RendezvousJob(int np, std::vector<rendezvous::membership::HostSlots> hosts,
                             absl::Duration agent_timeout)
    : authority_(*rendezvous::security::JobAuthority::Create("the-job")) {
  rendezvous::server::ServerOptions options;
  options.job_id = "the-job";
  options.job.min_workers = np;
  options.job.max_workers = np;
  options.job.expected_hosts = std::move(hosts);
  options.job.failure_grace = absl::ZeroDuration();
  options.listen = {"127.0.0.1:0"};
  options.agent_timeout = agent_timeout;
  options.credentials = *authority_->IssueForDaemon();
  options.on_finished = [this](const rendezvous::membership::Verdict& verdict) {
    verdict_ = verdict;
    finished_.Notify();
  };
  server_ = *rendezvous::server::Server::Start(std::move(options));
  address_ = server_->addresses()[0];
}

std::unique_ptr<rendezvous::client::RendezvousClient> RendezvousJob::NewClient() const {
  return rendezvous::client::NewGrpcRendezvousClient(address_, host_credentials());
}

rendezvous::membership::Verdict RendezvousJob::WaitForVerdict() {
  finished_.WaitForNotification();
  return verdict_;
}

void RendezvousJob::AskUntilJoining(int workers) {
  const auto client = NewClient();
  int joining = -1;
  while (joining != workers) {
    const auto status = client->GetStatus(absl::InfiniteDuration());
    ASSERT_TRUE(status.ok()) << status.status();
    joining = 0;
    for (const pb::HostStatus& host : status->hosts()) {
      for (const pb::WorkerStatus& worker : host.workers()) joining += worker.state() == "joining";
    }
  }
}

PlayedAgent::PlayedAgent(const std::string& address,
                         const rendezvous::security::PeerCredentials& credentials,
                         const std::string& host, int slots, absl::Duration patience,
                         const std::set<uint64_t>& known_workers) {
  pb::AgentHello hello;
  hello.set_version(kVersion);
  hello.set_host(host);
  hello.set_slots(static_cast<uint32_t>(slots));
  hello.set_incarnation(1);
  for (const uint64_t worker : known_workers) hello.add_known_workers(worker);
  link_ = rendezvous::client::AgentLink::Open(
      address, credentials, hello,
      {[this](const pb::AgentCommand& command) { OnCommand(command); },
       [this](absl::Status status) {
         status_ = std::move(status);
         closed_.Notify();
       }},
      {patience, patience});
}

void PlayedAgent::OnCommand(const pb::AgentCommand& command) {
  if (command.has_end()) end_of_job_.Notify();
  absl::MutexLock lock(&mu_);
  if (command.has_start()) started_.insert(command.start().worker_id());
  stopped_.insert(command.stop().worker_ids().begin(), command.stop().worker_ids().end());
}

void PlayedAgent::WaitForStop(uint64_t worker) {
  absl::MutexLock lock(&mu_);
  const auto told = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopped_.count(worker) > 0; };
  mu_.Await(absl::Condition(&told));
}

std::set<uint64_t> PlayedAgent::WaitForStarts(size_t workers) {
  absl::MutexLock lock(&mu_);
  const auto enough = [&]()
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return started_.size() >= workers; };
  mu_.Await(absl::Condition(&enough));
  return started_;
}

void PlayedAgent::WaitForEndOfJob() { end_of_job_.WaitForNotification(); }

absl::Status PlayedAgent::WaitForClose() {
  closed_.WaitForNotification();
  return status_;
}

void PlayedAgent::SayExited(uint64_t worker, int exit_code) {
  pb::AgentMessage message;
  message.mutable_exited()->set_worker_id(worker);
  message.mutable_exited()->set_exit_code(exit_code);
  link_->Send(std::move(message));
}

}  // namespace hvd
