#include "rendezvous/rendezvousd.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/status_macros.h"
#include "rendezvous/credentials_bundle.h"
#include "rendezvous/security/job_credentials.h"
#include "rendezvous/server/server.h"

namespace hvd {
namespace {

// People and schedulers start the agents, and not in a hurry.
constexpr absl::Duration kStartTimeout = absl::Minutes(10);
// For workers to end by themselves after the first signal.
constexpr absl::Duration kStopGrace = absl::Seconds(5);

// Blocks SIGTERM and SIGINT, here and in threads started later, and makes them readable.
absl::StatusOr<Fd> TakeStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  Fd fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return absl::ResourceExhaustedError("no descriptor for signals is left");
  signal(SIGPIPE, SIG_IGN);
  return fd;
}

ServerOptions ToServerOptions(const RendezvousdOptions& options, const std::string& job_id,
                              PeerCredentials credentials) {
  ServerOptions server;
  server.job_id = job_id;
  server.job.min_workers = options.np;
  server.job.max_workers = options.np;
  server.job.expected_hosts = options.hosts;
  server.job.start_timeout = kStartTimeout;
  server.listen = options.listen;
  server.credentials = std::move(credentials);
  return server;
}

// Ends the job at the first signal, at once at any further one.
class StopOnSignal {
 public:
  StopOnSignal(int fd, Server& server) : fd_(fd), server_(server) {}

  void operator()() {
    signalfd_siginfo info = {};
    if (read(fd_, &info, sizeof(info)) != sizeof(info)) return;
    const int signal = static_cast<int>(info.ssi_signo);
    server_.RequestStop(
        absl::StrCat("horovod-rendezvousd was ended by ", signal == SIGINT ? "SIGINT" : "SIGTERM"),
        128 + signal, std::exchange(grace_, absl::ZeroDuration()));
  }

 private:
  const int fd_;
  Server& server_;
  absl::Duration grace_ = kStopGrace;
};

}  // namespace

absl::StatusOr<int> RunRendezvousd(const RendezvousdOptions& options) {
  ASSIGN_OR_RETURN(const Fd signals, TakeStopSignals());
  ASSIGN_OR_RETURN(const std::unique_ptr<EventLoop> loop, EventLoop::Create());
  const std::string job_id = NewJobId();
  ASSIGN_OR_RETURN(const std::unique_ptr<JobAuthority> authority, JobAuthority::Create(job_id));
  ASSIGN_OR_RETURN(PeerCredentials own, authority->IssueForDaemon());
  ASSIGN_OR_RETURN(const PeerCredentials hosts, authority->IssueForHost("any host"));
  ASSIGN_OR_RETURN(const auto bundle, CredentialsBundle::Write(options.credentials_out, hosts));

  Verdict verdict;
  ServerOptions server_options = ToServerOptions(options, job_id, std::move(own));
  server_options.on_finished = [&](const Verdict& found) {
    loop->Post([&loop, &verdict, found] {
      verdict = found;
      loop->Stop();
    });
  };
  ASSIGN_OR_RETURN(const std::unique_ptr<Server> server, Server::Start(std::move(server_options)));
  StopOnSignal stop(signals.get(), *server);
  RETURN_IF_ERROR(loop->Watch(signals.get(), EPOLLIN, [&stop](uint32_t) { stop(); }));
  for (const std::string& address : server->addresses()) std::printf("%s\n", address.c_str());
  std::fflush(stdout);
  loop->Run();
  std::fprintf(stderr, "horovod-rendezvousd: %s\n", verdict.summary.c_str());
  return verdict.exit_code;
}

}  // namespace hvd
