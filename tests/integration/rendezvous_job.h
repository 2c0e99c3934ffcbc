// A job's server on loopback, with agents and workers played by the test.
#ifndef TESTS_INTEGRATION_RENDEZVOUS_JOB_H_
#define TESTS_INTEGRATION_RENDEZVOUS_JOB_H_

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "rendezvous/client/agent_link.h"
#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/security/job_credentials.h"
#include "rendezvous/server/server.h"

namespace hvd {

// Thread-safe, except for StopServer.
class RendezvousJob {
 public:
  // `hosts`: the expected hosts; empty: any host may join.
  explicit RendezvousJob(int np, std::vector<rendezvous::membership::HostSlots> hosts = {},
                         absl::Duration agent_timeout = absl::Seconds(30));

  rendezvous::server::Server& server() { return *server_; }
  void StopServer() { server_.reset(); }

  std::string address() const { return address_; }
  rendezvous::security::PeerCredentials host_credentials() const {
    return *authority_->IssueForHost(rendezvous::security::kAnyHost);
  }
  rendezvous::security::PeerCredentials credentials_of(const std::string& host) const {
    return *authority_->IssueForHost(host);
  }
  std::unique_ptr<rendezvous::client::RendezvousClient> NewClient() const;

  // Waits for the end of the job.
  rendezvous::membership::Verdict WaitForVerdict();

  // Polls the job's status until this number of workers wait for a world: there is no event for
  // that.
  void AskUntilJoining(int workers);

 private:
  const std::unique_ptr<rendezvous::security::JobAuthority> authority_;
  rendezvous::membership::Verdict verdict_;
  absl::Notification finished_;
  std::unique_ptr<rendezvous::server::Server> server_;
  std::string address_;
};

// An agent that starts no processes.
class PlayedAgent {
 public:
  PlayedAgent(const RendezvousJob& job, const std::string& host, int slots)
      : PlayedAgent(job.address(), job.host_credentials(), host, slots) {}
  PlayedAgent(const std::string& address, const rendezvous::security::PeerCredentials& credentials,
              const std::string& host, int slots, absl::Duration patience = absl::Seconds(30),
              const std::set<uint64_t>& known_workers = {});

  // Waits for the commands to start this number of workers; returns their ids.
  std::set<uint64_t> WaitForStarts(size_t workers);
  // Waits for the command to stop `worker`.
  void WaitForStop(uint64_t worker);
  void WaitForEndOfJob();
  absl::Status WaitForClose();

  void SayExited(uint64_t worker, int exit_code);
  // Leaves in good order.
  void Leave() { link_->Finish(); }
  // Behaves as if the process died.
  void Die() { link_.reset(); }

 private:
  void OnCommand(const pb::AgentCommand& command);

  absl::Mutex mu_;
  std::set<uint64_t> started_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> stopped_ ABSL_GUARDED_BY(mu_);
  absl::Notification end_of_job_;
  absl::Notification closed_;
  absl::Status status_;
  std::unique_ptr<rendezvous::client::AgentLink> link_;  // last: its callbacks use the others
};

// A request of the worker `worker`, with the incarnation `worker` + 1000.
template <typename Request>
Request From(uint64_t worker) {
  Request request;
  request.mutable_worker()->set_worker_id(worker);
  request.mutable_worker()->set_incarnation(worker + 1000);
  return request;
}

}  // namespace hvd

#endif  // TESTS_INTEGRATION_RENDEZVOUS_JOB_H_
