#include "launcher/control.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/local_network.h"
#include "base/net/tcp_socket.h"
#include "base/status_macros.h"
#include "base/text/duration_text.h"
#include "base/text/names.h"
#include "base/text/utf8.h"
#include "launcher/job/job_file.h"
#include "launcher/report/status_json.h"
#include "launcher/report/status_table.h"
#include "rendezvous/client/control_calls.h"
#include "rendezvous/security/credentials_message.h"
#include "rendezvous/security/token_file.h"

namespace hvd::launcher {
namespace {

constexpr absl::Duration kResolveTimeout = absl::Seconds(5);
constexpr absl::Duration kCallTimeout = absl::Seconds(5);

// The daemon of a job: its candidate addresses, and the credentials to call it. Daemons that stand
// by do not listen, so their addresses may be among the candidates.
struct Daemon {
  std::vector<std::string> addresses;
  rendezvous::security::PeerCredentials credentials;
  std::string over;  // why there is no job to ask; empty: there may be one
};

// Whether the machine at this address says that nobody listens there.
bool IsRefused(const std::string& address) {
  const net::HostPort where = net::SplitHostPort(address);
  int port = 0;
  if (!absl::SimpleAtoi(where.port, &port)) return false;
  const absl::StatusOr<Fd> connected =
      net::ConnectTo(where.host, port, Clock::Real().Now() + kCallTimeout);
  return absl::StrContains(connected.status().message(), std::strerror(ECONNREFUSED));
}

// A daemon removes its token file when its job ends. A daemon that was killed leaves it, and may be
// started again, as may one whose address only does not answer.
bool HasEnded(const Daemon& daemon, const std::string& token_file) {
  return access(token_file.c_str(), F_OK) != 0 && errno == ENOENT &&
         std::all_of(daemon.addresses.begin(), daemon.addresses.end(), IsRefused);
}

absl::StatusOr<Daemon> DaemonElsewhere(const cli::ControlOptions& options) {
  Daemon daemon;
  const absl::StatusOr<pb::Credentials> credentials =
      rendezvous::security::ReadTokenFile(options.token_file);
  if (!credentials.ok() && !absl::IsNotFound(credentials.status())) return credentials.status();
  std::vector<std::string> hosts;
  for (const net::HostPort& where : options.connect) hosts.push_back(where.host);
  net::NameTable names = net::ResolveNames(hosts, kResolveTimeout);
  // A name that can't be resolved is left out: one daemon that answers suffices.
  for (const net::HostPort& where : options.connect) {
    for (const std::string& address : names[where.host]) {
      daemon.addresses.push_back(net::JoinHostPort(address, where.port));
    }
  }
  if (daemon.addresses.empty()) {
    return absl::NotFoundError(absl::StrCat("--connect: the host name ", absl::StrJoin(hosts, ", "),
                                            " can't be resolved"));
  }
  if (credentials.ok()) {
    daemon.credentials = rendezvous::security::FromMessage(*credentials);
  } else if (HasEnded(daemon, options.token_file)) {
    daemon.over =
        absl::StrCat("the job has ended: nobody listens at ", absl::StrJoin(daemon.addresses, ", "),
                     ", and its token file ", options.token_file, " has been removed");
  } else {
    return credentials.status();
  }
  return daemon;
}

Daemon DaemonOf(const pb::JobFile& job) {
  return {{job.addresses().begin(), job.addresses().end()},
          rendezvous::security::FromMessage(job.credentials()),
          ""};
}

std::vector<pb::JobFile> JobsMeant(const cli::ControlOptions& options,
                                   const std::vector<pb::JobFile>& jobs) {
  std::vector<pb::JobFile> meant;
  for (const pb::JobFile& job : jobs) {
    if (absl::StartsWith(job.job_id(), options.job)) meant.push_back(job);
  }
  return meant;
}

absl::StatusOr<Daemon> DaemonHere(const cli::ControlOptions& options,
                                  const std::vector<pb::JobFile>& jobs) {
  const std::vector<pb::JobFile> meant = JobsMeant(options, jobs);
  if (meant.size() == 1) return DaemonOf(meant[0]);
  if (jobs.empty() && options.job.empty())
    return Daemon{
        {}, {}, "you run no job on this machine; --connect and --token-file reach others"};
  if (meant.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no job of yours that runs here has an id that begins with ", options.job));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("several jobs run; which one? ",
                   absl::StrJoin(meant, " or ", [](std::string* out, const pb::JobFile& job) {
                     absl::StrAppend(out, "--job ", job.job_id().substr(0, 8), " (pid ", job.pid(),
                                     ": ", job.command(), ")");
                   })));
}

// Tries `call` with each candidate address until one answers. A daemon listens at all its own
// addresses, but not all may be reachable from here. An error other than a missing answer is final.
template <typename Call>
auto CallAny(const std::vector<std::string>& addresses, Call call) -> decltype(call("")) {
  // One after the other, not all at once: drain and stop are changes, and only one daemon leads.
  absl::Status last = absl::NotFoundError("the job has no address");
  for (const std::string& address : addresses) {
    auto answer = call(address);
    const bool silent =
        absl::IsUnavailable(answer.status()) || absl::IsDeadlineExceeded(answer.status());
    if (!silent) return answer;
    last = answer.status();
  }
  return last;
}

absl::StatusOr<pb::GetStatusResponse> StatusOf(const Daemon& daemon) {
  return CallAny(daemon.addresses, [&](const std::string& address) {
    return rendezvous::client::AskStatus(address, daemon.credentials, kCallTimeout);
  });
}

// The list of jobs, one line per job.
std::string JobList(const std::vector<pb::JobFile>& jobs) {
  std::string list = absl::StrCat(jobs.size(), " jobs run here; --job ID shows one of them\n\n");
  for (const pb::JobFile& job : jobs) {
    // A job that does not answer costs its own line only, not the list.
    const absl::StatusOr<pb::GetStatusResponse> status = StatusOf(DaemonOf(job));
    const std::string state =
        !status.ok() ? "does not answer"
        : status->epoch() == 0
            ? status->state()
            : absl::StrCat(status->state(), ", world ", status->epoch(), ", ", status->size(),
                           status->size() == 1 ? " rank" : " ranks");
    const std::string line = absl::StrCat(job.job_id().substr(0, 8), "  pid ", job.pid(), "  ",
                                          state, "  ", job.command());
    absl::StrAppend(&list, text::OnOneLine(line), "\n");
  }
  return list;
}

ControlAnswer StatusAnswer(const cli::ControlOptions& options,
                           const pb::GetStatusResponse& status) {
  return {options.json ? report::StatusJson(status) + "\n" : report::StatusTable(status),
          status.job_id(), status.state() == "done" || status.state() == "failed"};
}

absl::StatusOr<ControlAnswer> Drain(const cli::ControlOptions& options, const Daemon& daemon) {
  pb::DrainRequest request;
  request.set_host(text::ToUtf8(options.host));
  request.set_grace_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(options.grace)));
  // If only an answer was lost, the next address repeats the call, which does no harm.
  RETURN_IF_ERROR(CallAny(daemon.addresses, [&](const std::string& address) {
                    return rendezvous::client::AskToDrain(address, daemon.credentials, request,
                                                          kCallTimeout);
                  }).status());
  return ControlAnswer{absl::StrCat(
      "host ", options.host,
      " is being drained: its workers stop at the next commit, or now if they make no commits, and "
      "the job continues without them\n")};
}

// What happens to the workers of a job that was stopped.
std::string StopText(const cli::ControlOptions& options, const pb::StopResponse& answer) {
  if (options.now) return "its workers are killed";
  if (answer.grace_ms() == 0) return "no rank is in training";
  const std::string grace = text::DurationText(absl::Milliseconds(answer.grace_ms()));
  return answer.at_next_commit()
             ? absl::StrCat("its workers leave at their next commit, within ", grace)
             : absl::StrCat("its workers get SIGTERM, and SIGKILL after ", grace);
}

absl::StatusOr<ControlAnswer> Stop(const cli::ControlOptions& options, const Daemon& daemon) {
  pb::StopRequest request;
  request.set_at_once(options.now);
  ASSIGN_OR_RETURN(
      const pb::StopResponse answer, CallAny(daemon.addresses, [&](const std::string& address) {
        return rendezvous::client::AskToStop(address, daemon.credentials, request, kCallTimeout);
      }));
  if (answer.was_over())
    return ControlAnswer{absl::StrCat("job ", answer.job_id(), " is over, or ends already",
                                      options.now ? ": what is left of it is killed\n" : "\n")};
  return ControlAnswer{absl::StrCat("job ", answer.job_id(), " ends: ", StopText(options, answer),
                                    "; its exit code is ", 128 + SIGTERM, "\n")};
}

}  // namespace

absl::StatusOr<ControlAnswer> Control(const cli::ControlOptions& options,
                                      const std::string& job_realm) {
  using Action = cli::ControlOptions::Action;
  // Looked for once: another job may begin or end meanwhile.
  std::vector<pb::JobFile> jobs;
  if (options.connect.empty()) jobs = job::RunningJobs(job_realm);
  // For people several jobs are a list. Any other command must not guess, so DaemonHere refuses
  // them.
  const std::vector<pb::JobFile> meant = JobsMeant(options, jobs);
  if (options.action == Action::kStatus && !options.json && meant.size() > 1) {
    return ControlAnswer{JobList(meant)};
  }
  ASSIGN_OR_RETURN(const Daemon daemon,
                   options.connect.empty() ? DaemonHere(options, jobs) : DaemonElsewhere(options));
  // To stop what has ended is no error. A wrong id or token may be one, and the job may go on.
  if (!daemon.over.empty() && options.action == Action::kStop)
    return ControlAnswer{daemon.over + "\n"};
  if (!daemon.over.empty()) return absl::NotFoundError(daemon.over);
  if (options.action == Action::kDrain) return Drain(options, daemon);
  if (options.action == Action::kStop) return Stop(options, daemon);
  ASSIGN_OR_RETURN(const pb::GetStatusResponse status, StatusOf(daemon));
  return StatusAnswer(options, status);
}

}  // namespace hvd::launcher
