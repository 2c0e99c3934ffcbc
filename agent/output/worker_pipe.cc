#include "agent/output/worker_pipe.h"

#include <utility>

namespace hvd::agent::output {
namespace {

constexpr size_t kReadBytes = 64 << 10;
// Limits ReadRest: other processes with the pipe open may go on writing.
constexpr int kMaxReadsOfRest = 8;

}  // namespace

WorkerPipe::WorkerPipe(EventLoop& loop, Fd fd, LineSplitter::Take take,
                       std::function<void()> on_end)
    : loop_(loop), fd_(std::move(fd)), take_(std::move(take)), on_end_(std::move(on_end)) {
  if (!SetNonBlocking(fd_.get()).ok() ||
      !loop_.Watch(fd_.get(), EPOLLIN, [this](uint32_t) { ReadOnce(); }).ok()) {
    Close();
  }
}

WorkerPipe::~WorkerPipe() {
  if (open()) loop_.Forget(fd_.get());
}

void WorkerPipe::set_paused(bool paused) {
  if (open()) loop_.Change(fd_.get(), paused ? uint32_t{0} : EPOLLIN);
}

void WorkerPipe::ReadRest() {
  for (int i = 0; i < kMaxReadsOfRest && open(); ++i) {
    if (!ReadOnce()) return;
  }
}

bool WorkerPipe::ReadOnce() {
  char buffer[kReadBytes];
  const IoResult got = ReadSome(fd_.get(), buffer, sizeof(buffer));
  splitter_.Append({buffer, got.bytes}, take_);
  if (got.end) {
    Close();
    on_end_();
  }
  return got.bytes > 0;
}

void WorkerPipe::Close() {
  if (!open()) return;
  splitter_.Finish(take_);
  loop_.Forget(fd_.get());
  fd_.reset();
}

}  // namespace hvd::agent::output
