#include "launcher/agent/agent_program.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/event_loop.h"
#include "base/process_tree.h"
#include "launcher/agent/guard.h"
#include "launcher/agent/join.h"
#include "launcher/agent/join_options.h"
#include "launcher/agent/stdio_agent.h"
#include "launcher/spawn/agent_protocol.h"

namespace hvd {
namespace {

constexpr char kThisProgram[] = "/proc/self/exe";
constexpr char kGuardProgram[] = "horovod-guard";
constexpr char kStdio[] = "--stdio";
constexpr char kGuarded[] = "--guarded";  // first, before what the guard was given

int Complain(const absl::Status& status) {
  fprintf(stderr, "%s: %s\n", kAgentProgram, std::string(status.message()).c_str());
  return kAgentRefusedExitCode;
}

// Without `join`: as horovodrun starts it.
int RunAgent(const std::optional<JoinOptions>& join, Agent::OpenLink open_link) {
  prctl(PR_SET_NAME, kAgentProgram);
  absl::StatusOr<pb::AgentBootstrap> bootstrap;
  if (join.has_value()) {
    // While signals still end this process: the resolver may take its time.
    bootstrap = MakeJoinBootstrap(*join);
    if (!bootstrap.ok()) return Complain(bootstrap.status());
  }
  BlockAgentSignals();
  BecomeSubreaper();
  absl::StatusOr<std::unique_ptr<EventLoop>> loop = EventLoop::Create();
  if (!loop.ok()) {
    fprintf(stderr, "%s\n", loop.status().ToString().c_str());
    return 1;
  }
  return join.has_value()
             ? RunJoinedAgent(**loop, *join, *bootstrap, std::move(open_link))
             : RunStdioAgent(**loop, STDIN_FILENO, STDOUT_FILENO, std::move(open_link));
}

int GuardAgent(int argc, char** argv) {
  prctl(PR_SET_NAME, kGuardProgram);
  SpawnOptions agent;
  agent.file = kThisProgram;
  agent.argv = {kAgentProgram, kGuarded};
  agent.argv.insert(agent.argv.end(), argv + 1, argv + argc);
  return RunGuard(agent);
}

// Once more, under a name of its own: what ends "horovod-agent" by name must not end the guard with
// it.
int BecomeGuard(int argc, char** argv) {
  std::vector<const char*> arguments = {kGuardProgram};
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  arguments.push_back(nullptr);
  execv(kThisProgram, const_cast<char* const*>(arguments.data()));
  perror(kAgentProgram);
  return 1;
}

}  // namespace

int RunAgentProgram(int argc, char** argv, Agent::OpenLink open_link) {
  const char* const called = argv[0];
  const bool guarded = argc > 1 && absl::string_view(argv[1]) == kGuarded;
  if (guarded) {
    --argc;
    ++argv;
  }
  std::optional<JoinOptions> join;
  if (argc != 2 || absl::string_view(argv[1]) != kStdio) {
    JoinCommand command = ParseJoinCommand(argc, argv);
    if (!command.options.has_value()) {
      std::fputs(command.text.c_str(), command.exit_code == 0 ? stdout : stderr);
      return command.exit_code;
    }
    join = std::move(command.options);
  }
  if (guarded) return RunAgent(join, std::move(open_link));
  return absl::EndsWith(called, kGuardProgram) ? GuardAgent(argc, argv) : BecomeGuard(argc, argv);
}

}  // namespace hvd
