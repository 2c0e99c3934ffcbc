// A horovod-agent for tests, with a daemon that only starts one worker per slot and does not check
// credentials. The job is elastic on a host named "elastic".
#include <memory>
#include <string>

#include "agent/agent_program.h"

namespace hvd::agent {
namespace {

class ScriptedLink : public rendezvous::client::AgentLink {
 public:
  ScriptedLink(const pb::AgentHello& hello, Callbacks callbacks)
      : callbacks_(std::move(callbacks)) {
    pb::AgentCommand command;
    command.mutable_welcome()->set_elastic(hello.host() == "elastic");
    callbacks_.on_command(command);
    for (uint32_t slot = 0; slot < hello.slots(); ++slot) {
      command.mutable_start()->set_worker_id(slot + 1);
      command.mutable_start()->mutable_placement()->set_rank(static_cast<int>(slot));
      callbacks_.on_command(command);
    }
  }
  // The job ends when one worker has ended, and at a drain.
  void Send(pb::AgentMessage message) override {
    if (!message.has_exited() && !message.has_draining()) return;
    pb::AgentCommand command;
    command.mutable_end()->set_exit_code(message.exited().exit_code());
    if (message.exited().exit_code() != 0) command.mutable_end()->set_summary("a worker failed");
    callbacks_.on_command(command);
  }
  void Finish() override { callbacks_.on_closed(absl::OkStatus()); }

 private:
  const Callbacks callbacks_;
};

}  // namespace
}  // namespace hvd::agent

int main(int argc, char** argv) {
  return hvd::agent::RunAgentProgram(
      argc, argv,
      [](const std::string&, const hvd::rendezvous::security::PeerCredentials&,
         const hvd::pb::AgentHello& hello, hvd::rendezvous::client::AgentLink::Callbacks callbacks,
         const hvd::rendezvous::transport::Patience&)
          -> std::unique_ptr<hvd::rendezvous::client::AgentLink> {
        return std::make_unique<hvd::agent::ScriptedLink>(hello, std::move(callbacks));
      });
}
