#include "launcher/job/agent_fleet.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"

namespace hvd::launcher::job {

absl::StatusOr<size_t> AgentFleet::Start(const spawn::AgentTarget& target,
                                         const pb::AgentBootstrap& bootstrap) {
  // Numbers are not used again, so a late event of an earlier agent can't be taken for one of its
  // successor on the same host.
  const size_t agent = next_;
  spawn::AgentProcess::Callbacks callbacks;
  callbacks.on_ready = [this, agent](const std::string& warning) {
    events_.Post(AgentIsReady{agent, warning});
  };
  callbacks.on_refusal = [this, agent](const std::string& message) {
    events_.Post(AgentHasRefused{agent, message});
  };
  // Written here, on the agent's thread, and not by the loop: the output must not wait behind
  // events.
  callbacks.on_output = [this, host = target.host](const pb::WorkerOutput& line) {
    output_.Write(line.rank(), line.is_stderr(), line.line(), host,
                  filter_.Shows(line.worker_id(), line.rank()));
  };
  callbacks.on_exit = [this, agent](const spawn::AgentExit& exit) {
    events_.Post(AgentHasExited{agent, exit});
  };
  ASSIGN_OR_RETURN(std::unique_ptr<spawn::AgentProcess> process,
                   start_(target, bootstrap, std::move(callbacks)));
  // Callbacks may already have posted events of this agent; the loop handles them after this call,
  // since it is on the same thread.
  agents_[next_++] = {target, State::kStarting, std::move(process)};
  return agent;
}

void AgentFleet::MarkExited(size_t agent) {
  State& state = agents_.at(agent).state;
  switch (state) {
    case State::kStarting:
      state = State::kExitedEarly;
      return;
    case State::kReady:
      state = State::kExited;
      return;
    case State::kExitedEarly:
    case State::kExited:
      return;
  }
}

bool AgentFleet::ready(size_t agent) const {
  const State state = agents_.at(agent).state;
  return state == State::kReady || state == State::kExited;
}

std::vector<size_t> AgentFleet::agents() const {
  std::vector<size_t> result;
  for (const auto& [agent, unused] : agents_) result.push_back(agent);
  return result;
}

bool AgentFleet::AllExited() const {
  return std::all_of(agents_.begin(), agents_.end(), [](const auto& entry) {
    const State state = entry.second.state;
    return state == State::kExitedEarly || state == State::kExited;
  });
}

void AgentFleet::CloseAllInputs() {
  for (auto& [unused, agent] : agents_) agent.process->CloseInput();
}

void AgentFleet::KillAll() {
  for (auto& [unused, agent] : agents_) agent.process->Kill();
}

std::string DescribeExit(const spawn::AgentExit& exit) {
  const std::string how = exit.signal != 0 ? absl::StrCat("killed by signal ", exit.signal, " (",
                                                          strsignal(exit.signal), ")")
                                           : absl::StrCat("exit code ", exit.exit_code);
  const absl::string_view said = absl::StripAsciiWhitespace(exit.stderr_text);
  if (said.empty()) return how;
  return absl::StrCat(
      how, "; it said: ", absl::StrReplaceAll(said, {{"\r\n", " | "}, {"\n", " | "}, {"\r", " "}}));
}

}  // namespace hvd::launcher::job
