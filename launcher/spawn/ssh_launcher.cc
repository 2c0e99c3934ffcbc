#include "launcher/spawn/ssh_launcher.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "launcher/spawn/agent_command.h"
#include "launcher/spawn/command.h"
#include "launcher/spawn/complaint.h"

namespace hvd::launcher::spawn {
namespace {

constexpr int kSshPauseSeconds = 5;

constexpr Complaint kComplaints[] = {
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

}  // namespace

AgentInvocation SshLauncher::Command(const std::string& host,
                                     const std::string& install_directory) const {
  // No terminal (-T), which would change the bytes of frames; no X11 (-x), whose set-up may print
  // text or fail. BatchMode fails at once where ssh would ask for a password. ServerAlive detects a
  // host that is gone.
  std::vector<std::string> argv = {
      "ssh",
      "-T",
      "-x",
      "-o",
      "BatchMode=yes",
      "-o",
      absl::StrCat("ConnectTimeout=", options_.connect_timeout_seconds),
      "-o",
      absl::StrCat("ServerAliveInterval=", kSshPauseSeconds),
      "-o",
      absl::StrCat("ServerAliveCountMax=",
                   std::max(1, options_.silence_seconds / kSshPauseSeconds))};
  if (options_.port != 0) {
    argv.insert(argv.end(), {"-p", absl::StrCat(options_.port)});
  }
  if (!options_.identity_file.empty()) {
    argv.insert(argv.end(), {"-i", options_.identity_file});
  }
  // "--" ends the options, so that a host name can't be read as one.
  argv.insert(argv.end(), {"--", host, ShellJoin(AgentCommandOfShell(install_directory))});
  return {"ssh", argv};
}

std::optional<Explanation> SshLauncher::Explain(const std::vector<std::string>& lines) const {
  return FindComplaint(kComplaints, name(), lines);
}

}  // namespace hvd::launcher::spawn
