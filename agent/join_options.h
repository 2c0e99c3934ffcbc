// The command line of `horovod-agent --join`, an agent without a launcher.
#ifndef AGENT_JOIN_OPTIONS_H_
#define AGENT_JOIN_OPTIONS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/net/address.h"

namespace hvd::agent {

struct JoinOptions {
  // The job's daemons, each by its name or numeric address; one of several is the leader.
  std::vector<net::HostPort> daemons;
  std::string token_file;
  uint32_t slots = 1;
  std::string host;     // the host's name in the job; empty: this machine's own name
  std::string machine;  // the same for all agents of one machine; empty: detected
  absl::Duration grace = absl::Seconds(30);  // of a drain; zero: the job's own
  absl::Duration start_timeout = absl::Seconds(60);
  std::vector<std::string> networks;
  bool restarts = false;         // the command: agent/restarter starts it in each world anew
  bool end_with_parent = false;  // the agent ends when the process that started it has ended
  bool end_with_stdin = false;   // the agent ends at the end of its stdin
  std::string worker_stdin;      // a file; empty: nothing
  std::optional<pid_t> adopt;    // the process that is the only worker; then there is no command
  std::vector<std::string> command;
};

// The parsed command line: either the options, or a text to print and an exit code. The text is for
// stdout if the exit code is 0, else for stderr.
struct JoinCommand {
  std::optional<JoinOptions> options;
  std::string text;
  int exit_code = 0;
};

JoinCommand ParseJoinCommand(int argc, const char* const* argv);

}  // namespace hvd::agent

#endif  // AGENT_JOIN_OPTIONS_H_
