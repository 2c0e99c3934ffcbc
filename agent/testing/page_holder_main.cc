// A stand-in for a worker in tests: asks the agent as a worker does, holds the liveness page that
// comes with the answer, prints its pid, and waits to be killed. With the argument "leave" it exits
// at once, with "exec" it is busy and executes another program, with
// "rest,exec" it is not busy any more; with "arena" it only prints which file holds the commits,
// with "answer" the answer. With "commit=NUMBER" it first makes a commit of that id; with "newest"
// it asks for the newest commit of the host, which it prints.
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/net/descriptor_passing.h"
#include "base/net/frames.h"
#include "base/os/liveness_page.h"
#include "base/settings/runtime_settings.h"
#include "proto/agent.pb.h"
#include "worker_runtime/commit_store/arena_view.h"
#include "worker_runtime/commit_store/commit_arena.h"

namespace hvd::agent {
namespace {

using worker_runtime::commit_store::ArenaView;
using worker_runtime::commit_store::CommitArena;

Fd Ask(const settings::RuntimeEnv& env, bool newest_commit) {
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string& name = env.agent_socket;
  name.copy(address.sun_path + 1, name.size());
  const socklen_t length = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) return Fd();
  pb::WorkerHello hello;
  hello.set_worker_id(env.worker_id);
  hello.set_word(env.worker_word);
  hello.set_newest_commit(newest_commit);
  return net::WriteFrame(fd.get(), hello.SerializeAsString()).ok() ? std::move(fd) : Fd();
}

struct Answer {
  pb::WorkerBootstrap bootstrap;
  Fd page, arena, newest;
};

Answer ReadAnswer(const Fd& fd) {
  Answer answer;
  net::FrameDecoder decoder(net::kMaxFrameBytes);
  std::vector<Fd> passed;
  for (std::optional<std::string> frame; !frame.has_value();) {
    char buffer[4096];
    pollfd readable = {fd.get(), POLLIN, 0};
    poll(&readable, 1, -1);
    const size_t got =
        net::ReceiveWithDescriptors(fd.get(), buffer, sizeof(buffer), passed).value();
    if (got == 0) return answer;
    decoder.Append({buffer, got});
    frame = decoder.Next().value();
    if (frame.has_value()) answer.bootstrap.ParseFromString(*frame);
  }
  auto next = passed.begin();
  if (answer.bootstrap.has_liveness_page()) answer.page = std::move(*next++);
  if (answer.bootstrap.has_commit_arena()) answer.arena = std::move(*next++);
  if (answer.bootstrap.has_kept_commits()) answer.newest = std::move(passed.back());
  return answer;
}

// Makes a commit of this id.
bool Commit(Answer& answer, absl::string_view id) {
  uint64_t number = 0;
  auto arena = CommitArena::Open(std::move(answer.arena), answer.bootstrap.job_id());
  return absl::SimpleAtoi(id, &number) && arena.ok() && (*arena)->Begin(1).ok() &&
         (*arena)->Seal(number).ok();
}

void Print(const pb::WorkerBootstrap& told) {
  printf("%s%s %s %s %s page %d arena %d stack %d\n", told.error().c_str(),
         told.credentials().token().c_str(), told.host().c_str(), told.daemon_address().c_str(),
         told.advertise_address().c_str(), told.has_liveness_page(), told.has_commit_arena(),
         told.has_stack_pipe());
}

int Run(absl::string_view what) {
  const settings::RuntimeEnv env =
      settings::ParseRuntimeEnv(settings::ReadRuntimeVariables()).value();
  const bool asks_newest = what == "newest";
  Answer answer = ReadAnswer(Ask(env, asks_newest));
  if (asks_newest) {
    ArenaView view(std::move(answer.newest), "job");
    printf("newest %d\n", static_cast<int>(view.Newest().value_or(ArenaView::Commit()).number));
    return 0;
  }
  if (absl::ConsumePrefix(&what, "commit=") && !Commit(answer, what)) return 1;
  if (what == "answer") {
    Print(answer.bootstrap);
    return 0;
  }
  if (what == "arena") {
    struct stat info = {};
    if (fstat(answer.arena.get(), &info) != 0) return 1;
    printf("%lu\n", static_cast<unsigned long>(info.st_ino));
    return 0;
  }
  absl::StatusOr<os::LivenessPage> page = os::LivenessPage::Map(std::move(answer.page));
  if (!page.ok() || !page->HoldForever().ok()) {
    puts("no page");
    return 1;
  }
  page->SetBusy(true);
  if (absl::ConsumePrefix(&what, "rest,")) page->SetBusy(false);
  printf("%d\n", getpid());
  fflush(stdout);
  if (what == "exec") execlp("sleep", "sleep", "1000", nullptr);
  while (what != "leave") pause();
  return 0;
}

}  // namespace
}  // namespace hvd::agent

int main(int argc, char** argv) { return hvd::agent::Run(argc > 1 ? argv[1] : ""); }
