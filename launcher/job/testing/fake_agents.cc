#include "launcher/job/testing/fake_agents.h"

#include <csignal>
#include <utility>

namespace hvd::launcher::job {
namespace {

void ExitOnce(FakeAgents::Agent& agent, const spawn::AgentExit& exit) {
  if (std::exchange(agent.exited, true)) return;
  agent.callbacks.on_exit(exit);
}

class FakeAgent : public spawn::AgentProcess {
 public:
  explicit FakeAgent(std::shared_ptr<FakeAgents::Agent> agent) : agent_(std::move(agent)) {}
  ~FakeAgent() override { Kill(); }

  void CloseInput() override {
    agent_->input_closed = true;
    if (!agent_->stubborn) ExitOnce(*agent_, {});
  }

  void Kill() override {
    if (agent_->exited) return;
    agent_->killed = true;
    ExitOnce(*agent_, {0, SIGKILL, ""});
  }

 private:
  const std::shared_ptr<FakeAgents::Agent> agent_;
};

}  // namespace

StartAgent FakeAgents::Starter() {
  return [this](const spawn::AgentTarget& target, const pb::AgentBootstrap& bootstrap,
                spawn::AgentProcess::Callbacks callbacks)
             -> absl::StatusOr<std::unique_ptr<spawn::AgentProcess>> {
    const auto failure = failures_.find(target.host);
    if (failure != failures_.end()) return failure->second;
    auto agent = std::make_shared<Agent>();
    agent->target = target;
    agent->bootstrap = bootstrap;
    agent->callbacks = std::move(callbacks);
    agents_[target.host] = agent;
    return std::make_unique<FakeAgent>(agent);
  };
}

void FakeAgents::Exit(const std::string& host, spawn::AgentExit exit) {
  ExitOnce((*this)[host], exit);
}

void FakeAgents::ExitAll() {
  for (auto& [host, agent] : agents_) ExitOnce(*agent, {});
}

}  // namespace hvd::launcher::job
