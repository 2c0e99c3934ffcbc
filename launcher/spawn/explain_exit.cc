// ExplainEarlyExit of agent_process.h.
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "agent/protocol/agent_protocol.h"
#include "launcher/spawn/agent_process.h"

namespace hvd::launcher::spawn {
namespace {

constexpr int kShellNotFound = 127;
constexpr int kShellNotExecutable = 126;

// What ssh says, and what it means to somebody who wants to start a job. HOST stands for the host.
struct SshComplaint {
  absl::string_view sentence;
  absl::string_view meaning;
};

constexpr SshComplaint kSshComplaints[] = {
    {"REMOTE HOST IDENTIFICATION HAS CHANGED",
     "ssh has another key on record for this host; if the change is rightful, remove the old key "
     "with "
     "'ssh-keygen -R HOST' and accept the new one with 'ssh HOST'"},
    {"Host key verification failed",
     "ssh does not know this host's key; accept it once with 'ssh HOST', or add it to known_hosts"},
    {"Too many authentication failures",
     "ssh was not let in; name the right key with --ssh-identity-file"},
    {"Permission denied",
     "ssh was not let in without a password; make 'ssh -o BatchMode=yes HOST true' work "
     "(authorized_keys on the "
     "host, or --ssh-identity-file)"},
    {"Could not resolve hostname", "this host name can't be resolved; check its spelling"},
    {"Connection refused",
     "no ssh server answers there; check that sshd runs, or give its port with --ssh-port"},
    {"No route to host", "the host can't be reached; check that it is up and in this network"},
    {"Network is unreachable", "there is no network route to this host"},
    {"timed out", "the host does not answer; check that it is up and that no firewall blocks ssh"},
    {"kex_exchange_identification",
     "the ssh server closed the connection at once; it may be overloaded (MaxStartups) or not be "
     "an ssh server"},
    {"Connection closed by", "the ssh server closed the connection"},
    {"Connection reset by", "the ssh server closed the connection"},
    {"Broken pipe", "the connection was lost"},
};

std::vector<std::string> Lines(absl::string_view text) {
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(text, absl::ByAnyChar("\r\n"))) {
    line = absl::StripAsciiWhitespace(line);
    if (!line.empty()) lines.emplace_back(line);
  }
  return lines;
}

std::string ExplainMissingProgram(const AgentTarget& target, const AgentExit& exit,
                                  const std::string& last_line) {
  return absl::StrCat(
      target.host, ": ", agent::protocol::kAgentProgram,
      exit.exit_code == kShellNotFound ? " was not found" : " can't be executed",
      " there; install this version of horovod on that host, in the same directory as "
      "here or on the PATH that non-interactive shells have",
      last_line.empty() ? "" : absl::StrCat(" (", last_line, ")"));
}

std::string HowItEnded(const AgentExit& exit) {
  if (exit.signal != 0) return absl::StrCat("was killed by signal ", exit.signal);
  return absl::StrCat("exited with code ", exit.exit_code);
}

}  // namespace

std::string ExplainEarlyExit(const AgentTarget& target, const AgentExit& exit) {
  const std::vector<std::string> lines = Lines(exit.stderr_text);
  const std::string last_line = lines.empty() ? "" : lines.back();
  const bool missing = exit.signal == 0 &&
                       (exit.exit_code == kShellNotFound || exit.exit_code == kShellNotExecutable);
  if (missing) return ExplainMissingProgram(target, exit, last_line);
  if (!target.local) {
    for (const SshComplaint& complaint : kSshComplaints) {
      for (const std::string& line : lines) {
        if (!absl::StrContains(line, complaint.sentence)) continue;
        const std::string meaning = absl::StrReplaceAll(complaint.meaning, {{"HOST", target.host}});
        return absl::StrCat(target.host, ": ", meaning,
                            " (ssh: ", absl::StripAsciiWhitespace(absl::StripPrefix(line, "ssh:")),
                            ")");
      }
    }
  }
  return absl::StrCat(target.host, ": ",
                      target.local ? agent::protocol::kAgentProgram : "the ssh session", " ",
                      HowItEnded(exit), " before the host was ready",
                      last_line.empty() ? "" : absl::StrCat(": ", last_line));
}

}  // namespace hvd::launcher::spawn
