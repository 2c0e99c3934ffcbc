#include "agent/inspection/stack_probe.h"

#include <utility>

#include "absl/status/status.h"
#include "agent/inspection/process_state.h"
#include "agent/inspection/stack_text.h"
#include "base/status_macros.h"

namespace hvd::agent::inspection {
namespace {

// faulthandler writes the dump in many pieces without an end marker. It counts as complete when
// nothing has arrived for this time.
constexpr absl::Duration kSettleTime = absl::Milliseconds(20);

}  // namespace

StackSample SampleByKernel(pid_t process, bool has_ended) {
  if (has_ended) return {"has ended", {}};
  switch (StateOf(process)) {
    case 'T':
      return {"is stopped by a signal (SIGSTOP)", {}};
    case 't':
      return {"is held by a debugger", {}};
    case 'D':
      return {"is in a system call that can't be interrupted (disk or network file system)", {}};
    case 'R':
      return {"runs, but shows no Python stack", {}};
    case 'S':
      return {"sleeps, and shows no Python stack", {}};
    default:
      return {"is in a state that /proc does not show", {}};
  }
}

absl::StatusOr<std::unique_ptr<StackProbe>> StackProbe::Create(EventLoop& loop, pid_t process) {
  ASSIGN_OR_RETURN(os::OtherProcess other, os::OtherProcess::Open(process));
  ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  RETURN_IF_ERROR(SetNonBlocking(pipe.read.get()));
  RETURN_IF_ERROR(SetNonBlocking(pipe.write.get()));
  return std::unique_ptr<StackProbe>(new StackProbe(loop, std::move(other), std::move(pipe)));
}

StackProbe::StackProbe(EventLoop& loop, os::OtherProcess process, Pipe pipe)
    : loop_(loop), process_(std::move(process)), pipe_(std::move(pipe)) {}

StackProbe::~StackProbe() {
  loop_.Forget(pipe_.read.get());
  for (const auto& timer : {patience_timer_, settle_timer_}) {
    if (timer.has_value()) loop_.Cancel(*timer);
  }
}

void StackProbe::Ask(std::function<void(StackSample)> answer) {
  if (answer_ != nullptr) return;
  answer_ = std::move(answer);
  Read();
  ready_ = ready_ || dump_.rfind(kReady, 0) == 0;
  dump_.clear();  // drops a late answer to an earlier signal
  const bool asked =
      SendSignal() &&
      loop_.Watch(pipe_.read.get(), EPOLLIN, [this](uint32_t) { OnReadable(); }).ok();
  patience_timer_ = loop_.After(asked ? kPatience : absl::ZeroDuration(), [this] {
    patience_timer_.reset();
    Answer(SampleByKernel(process_.pid(), process_.HasEnded()));
  });
}

// Returns whether the signal was sent. A stopped process would handle it only after it is
// continued.
bool StackProbe::SendSignal() const {
  return ready_ && Catches(process_.pid(), Signal()) && StateOf(process_.pid()) != 'T' &&
         process_.Signal(Signal());
}

void StackProbe::Read() {
  constexpr size_t kMostBytes = 1 << 20;
  char buffer[4096];
  while (true) {
    const IoResult got = ReadSome(pipe_.read.get(), buffer, sizeof(buffer));
    if (got.bytes == 0) return;
    if (dump_.size() < kMostBytes) dump_.append(buffer, got.bytes);
  }
}

void StackProbe::OnReadable() {
  Read();
  if (settle_timer_.has_value()) loop_.Cancel(*settle_timer_);
  settle_timer_ = loop_.After(kSettleTime, [this] {
    settle_timer_.reset();
    std::vector<std::string> frames = ParseStack(dump_);
    if (frames.empty()) return;
    std::string doing = DescribeStack(frames);
    Answer({std::move(doing), std::move(frames)});
  });
}

void StackProbe::Answer(StackSample sample) {
  loop_.Forget(pipe_.read.get());
  for (auto* timer : {&patience_timer_, &settle_timer_}) {
    if (timer->has_value()) loop_.Cancel(**timer);
    timer->reset();
  }
  // Last, since the callback may destroy this object.
  std::exchange(answer_, nullptr)(std::move(sample));
}

}  // namespace hvd::agent::inspection
