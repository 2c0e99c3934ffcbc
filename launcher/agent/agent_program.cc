#include "launcher/agent/agent_program.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/event_loop.h"
#include "base/process_tree.h"
#include "base/version.h"
#include "launcher/agent/guard.h"
#include "launcher/spawn/agent_protocol.h"

namespace hvd {
namespace {

constexpr char kThisProgram[] = "/proc/self/exe";
constexpr char kGuardProgram[] = "horovod-guard";
constexpr char kStdio[] = "--stdio";
constexpr char kGuarded[] = "--guarded";

int RunAgent(Agent::OpenLink open_link) {
  prctl(PR_SET_NAME, kAgentProgram);
  BlockAgentSignals();
  BecomeSubreaper();
  absl::StatusOr<std::unique_ptr<EventLoop>> loop = EventLoop::Create();
  if (!loop.ok()) {
    fprintf(stderr, "%s\n", loop.status().ToString().c_str());
    return 1;
  }
  return Agent(**loop, STDIN_FILENO, STDOUT_FILENO, std::move(open_link)).Run();
}

int GuardAgent() {
  prctl(PR_SET_NAME, kGuardProgram);
  SpawnOptions agent;
  agent.file = kThisProgram;
  agent.argv = {kAgentProgram, kStdio, kGuarded};
  return RunGuard(agent);
}

// Once more, under a name of its own: what ends "horovod-agent" by name must not end the guard with
// it.
int BecomeGuard() {
  const char* const argv[] = {kGuardProgram, kStdio, nullptr};
  execv(kThisProgram, const_cast<char* const*>(argv));
  perror(kAgentProgram);
  return 1;
}

}  // namespace

int RunAgentProgram(int argc, char** argv, Agent::OpenLink open_link) {
  const absl::string_view option = argc > 1 ? argv[1] : "";
  if (option == "--version") {
    printf("%s %s\n", kAgentProgram, kVersion);
    return 0;
  }
  if (option != kStdio) {
    fprintf(stderr, "usage: %s --version\nhorovodrun starts it on each host, with %s.\n",
            kAgentProgram, kStdio);
    return 2;
  }
  if (argc > 2 && absl::string_view(argv[2]) == kGuarded) return RunAgent(std::move(open_link));
  return absl::EndsWith(argv[0], kGuardProgram) ? GuardAgent() : BecomeGuard();
}

}  // namespace hvd
