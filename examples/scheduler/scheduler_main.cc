// scheduler --slots N --job "MIN-MAX COMMAND" [--job ...]: see README.md.
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/fd.h"
#include "base/status_macros.h"
#include "examples/scheduler/scheduler.h"

namespace {

struct Request {
  int slots = 0;
  std::vector<JobRequest> jobs;
};

absl::Status Wrong(const std::string& text) { return absl::InvalidArgumentError(text); }

// "2-4 python a.py"
absl::StatusOr<JobRequest> ParseJob(const std::string& text, size_t number) {
  const size_t dash = text.find('-');
  const size_t space = text.find(' ');
  JobRequest job;
  job.name = absl::StrCat("job", number);
  if (space == std::string::npos || dash > space ||
      !absl::SimpleAtoi(text.substr(0, dash), &job.min) ||
      !absl::SimpleAtoi(text.substr(dash + 1, space - dash - 1), &job.max) || job.min < 1 ||
      job.max < job.min) {
    return Wrong(absl::StrCat("--job: \"", text, "\" is not MIN-MAX COMMAND, as 2-4 python a.py"));
  }
  job.command = text.substr(space + 1);
  return job;
}

absl::StatusOr<Request> Parse(const std::vector<std::string>& arguments) {
  Request request;
  for (size_t i = 0; i + 1 < arguments.size(); i += 2) {
    if (arguments[i] == "--slots") {
      if (!absl::SimpleAtoi(arguments[i + 1], &request.slots) || request.slots < 1) {
        return Wrong(absl::StrCat("--slots: ", arguments[i + 1], " is no number of slots"));
      }
    } else if (arguments[i] == "--job") {
      ASSIGN_OR_RETURN(JobRequest job, ParseJob(arguments[i + 1], request.jobs.size() + 1));
      request.jobs.push_back(std::move(job));
    } else {
      return Wrong(absl::StrCat("no such option: ", arguments[i]));
    }
  }
  if (arguments.size() % 2 != 0 || request.slots == 0 || request.jobs.empty()) {
    return Wrong("usage: scheduler --slots N --job \"MIN-MAX COMMAND\" [--job ...]");
  }
  for (const JobRequest& job : request.jobs) {
    if (job.min <= request.slots) continue;
    return Wrong(
        absl::StrCat(job.name, " needs ", job.min, " slots, and there are ", request.slots));
  }
  return request;
}

absl::StatusOr<int> Run(const std::vector<std::string>& arguments) {
  ASSIGN_OR_RETURN(const Request request, Parse(arguments));
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  const hvd::Fd signals(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  ASSIGN_OR_RETURN(const auto loop, hvd::EventLoop::Create());
  ASSIGN_OR_RETURN(const auto server,
                   hvd::rendezvous::server::RendezvousServer::Start({{"127.0.0.1:0"}, ""}));
  Scheduler scheduler(*loop, *server, request.slots);
  for (const JobRequest& job : request.jobs) RETURN_IF_ERROR(scheduler.Add(job));
  RETURN_IF_ERROR(loop->Watch(signals.get(), EPOLLIN, [&](uint32_t) {
    signalfd_siginfo info = {};
    if (read(signals.get(), &info, sizeof(info)) == sizeof(info)) scheduler.Stop();
  }));
  return scheduler.Run();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::StatusOr<int> code = Run(std::vector<std::string>(argv + 1, argv + argc));
  if (code.ok()) return *code;
  std::fprintf(stderr, "scheduler: %s\n", std::string(code.status().message()).c_str());
  return 2;
}
