#include "agent/agent_program.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agent/guard.h"
#include "agent/join.h"
#include "agent/join_options.h"
#include "agent/process/adoption.h"
#include "agent/protocol/agent_protocol.h"
#include "agent/restarter/restarter.h"
#include "agent/stdio_agent.h"
#include "base/event_loop.h"
#include "base/failpoint/failpoint.h"
#include "base/os/process_limits.h"
#include "base/os/process_tree.h"
#include "base/os/signals.h"
#include "base/os/starter.h"
#include "base/text/names.h"

namespace hvd::agent {
namespace {

constexpr char kGuardProgram[] = "horovod-guard";
constexpr char kStdio[] = "--stdio";

int Complain(const absl::Status& status) {
  fprintf(stderr, "%s: %s\n", protocol::kAgentProgram, text::OnOneLine(status.message()).c_str());
  return protocol::kAgentRefusedExitCode;
}

absl::StatusOr<os::Starter> FindStarter(const JoinOptions& join) {
  absl::StatusOr<os::Starter> starter =
      os::Starter::Find({join.end_with_parent, join.end_with_stdin});
  if (starter.ok()) return starter;
  const char* const options = !join.end_with_stdin    ? "--end-with-parent"
                              : !join.end_with_parent ? "--end-with-stdin"
                                                      : "--end-with-parent --end-with-stdin";
  return absl::FailedPreconditionError(absl::StrCat(options, ": ", starter.status().message()));
}

// The agent's process, the guard's child. `join` empty: the mode in which horovodrun starts it.
int RunAgent(const std::optional<JoinOptions>& join, const os::Starter& starter,
             std::optional<os::OtherProcess> adoptee, Agent::OpenLink open_link) {
  const absl::Status stack = os::CheckStack();
  if (!stack.ok()) return Complain(stack);
  if (absl::Status space = os::CheckAddressSpace(); !space.ok()) return Complain(space);
  // A notice waits until there are workers that it may be meant for.
  os::BlockNotices();
  absl::StatusOr<pb::AgentBootstrap> bootstrap;
  if (join.has_value()) {
    // Before BlockAgentSignals, so that signals still end this process while it waits for the token
    // file or for name resolution.
    bootstrap = MakeJoinBootstrap(*join);
    if (!bootstrap.ok()) return Complain(bootstrap.status());
  }
  BlockAgentSignals();
  os::BecomeSubreaper();
  if (absl::Status files = os::CheckFiles(); !files.ok()) return Complain(files);
  const absl::Status threads = os::CheckThreads();
  if (!threads.ok()) return Complain(threads);
  absl::StatusOr<std::unique_ptr<EventLoop>> loop = EventLoop::Create();
  if (!loop.ok()) {
    fprintf(stderr, "%s\n", loop.status().ToString().c_str());
    return 1;
  }
  return join.has_value()
             ? RunJoinedAgent(**loop, *join, starter, std::move(adoptee), *bootstrap,
                              std::move(open_link))
             : RunStdioAgent(**loop, STDIN_FILENO, STDOUT_FILENO, std::move(open_link));
}

// Changes this process's name, both the kernel's and that in the command line (`called`, argv[0]),
// which is overwritten in place. A command that kills "horovod-agent" by name must not kill the
// guard as well.
void TakeName(const char* name, char* called) {
  static_assert(sizeof(kGuardProgram) == sizeof(protocol::kAgentProgram),
                "one has room for the other");
  prctl(PR_SET_NAME, name);
  if (!absl::EndsWith(called, protocol::kAgentProgram) && !absl::EndsWith(called, kGuardProgram))
    return;
  // The terminator of the old name stays.
  // NOLINTNEXTLINE(bugprone-not-null-terminated-result)
  memcpy(called + strlen(called) - strlen(name), name, strlen(name));
}

}  // namespace

int RunAgentProgram(int argc, char** argv, Agent::OpenLink open_link) {
  if (argc > 3 && absl::string_view(argv[1]) == protocol::kRestarterMode)
    restarter::RunRestarterProgram({argv + 2, argv + argc});
  std::optional<JoinOptions> join;
  if (argc != 2 || absl::string_view(argv[1]) != kStdio) {
    JoinCommand command = ParseJoinCommand(argc, argv);
    if (!command.options.has_value()) {
      std::fputs(command.text.c_str(), command.exit_code == 0 ? stdout : stderr);
      return command.exit_code;
    }
    join = std::move(command.options);
  }
  // Before RunGuard forks: the agent's parent is the guard, which is not the process to watch.
  const absl::StatusOr<os::Starter> starter = FindStarter(join.value_or(JoinOptions()));
  if (!starter.ok()) return Complain(starter.status());
  std::optional<os::OtherProcess> adoptee;
  if (join.has_value() && join->adopt.has_value()) {
    absl::StatusOr<os::OtherProcess> found = process::FindAdoptee(*join->adopt);
    if (!found.ok()) return Complain(found.status());
    adoptee = *std::move(found);
  }
  // Before the fork, so that both processes get them.
  failpoint::ArmByVariable("agent");
  TakeName(kGuardProgram, argv[0]);
  os::AllowManyFiles();
  os::ForbidCoreFiles();
  return RunGuard([&] {
    TakeName(protocol::kAgentProgram, argv[0]);
    return RunAgent(join, *starter, std::move(adoptee), std::move(open_link));
  });
}

}  // namespace hvd::agent
