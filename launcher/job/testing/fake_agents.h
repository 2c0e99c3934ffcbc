// Agents without processes, for tests with AgentFleet.
#ifndef LAUNCHER_JOB_TESTING_FAKE_AGENTS_H_
#define LAUNCHER_JOB_TESTING_FAKE_AGENTS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "launcher/job/agent_fleet.h"
#include "launcher/spawn/agent_process.h"

namespace hvd::launcher::job {

// Starts fakes and records, by host, the calls to them. A fake exits when it is killed, and when
// its input is closed unless its host is stubborn. For one thread.
class FakeAgents {
 public:
  struct Agent {
    spawn::AgentTarget target;
    pb::AgentBootstrap bootstrap;
    spawn::AgentProcess::Callbacks callbacks;
    bool input_closed = false;
    bool killed = false;
    bool exited = false;
    bool stubborn = false;
  };

  StartAgent Starter();

  // Makes every start of an agent on this host fail with `status`.
  void FailOn(const std::string& host, absl::Status status) { failures_[host] = std::move(status); }

  Agent& operator[](const std::string& host) { return *agents_[host]; }
  size_t size() const { return agents_.size(); }

  void Ready(const std::string& host, const std::string& warning = "") {
    (*this)[host].callbacks.on_ready(warning);
  }
  void Exit(const std::string& host, spawn::AgentExit exit = {});
  void ExitAll();

 private:
  std::map<std::string, std::shared_ptr<Agent>> agents_;
  std::map<std::string, absl::Status> failures_;
};

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_TESTING_FAKE_AGENTS_H_
