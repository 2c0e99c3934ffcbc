#include "tests/gpu/simulated/nccl/flow.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace simulated_gpu {

Flow::Flow(int file, Direction direction, int peer, const std::vector<Transfer>& transfers)
    : file_(file), direction_(direction) {
  std::copy_if(transfers.begin(), transfers.end(), std::back_inserter(transfers_),
               [peer](const Transfer& transfer) { return transfer.peer == peer; });
}

Flow::State Flow::Go() {
  for (; current_ < transfers_.size(); ++current_) {
    const Transfer& transfer = transfers_[current_];
    if (!has_size_) {
      if (direction_ == kOut) size_ = transfer.bytes;
      const State state = Move(&size_, sizeof(size_));
      if (state != State::kDone) return state;
      if (size_ != transfer.bytes) return State::kMismatch;
      has_size_ = true;
      moved_ = 0;
    }
    const State state = Move(transfer.data, transfer.bytes);
    if (state != State::kDone) return state;
    has_size_ = false;
    moved_ = 0;
  }
  return State::kDone;
}

Flow::State Flow::Move(void* data, size_t bytes) {
  while (moved_ < bytes) {
    char* const at = static_cast<char*>(data) + moved_;
    const ssize_t now = direction_ == kOut ? send(file_, at, bytes - moved_, MSG_NOSIGNAL)
                                           : recv(file_, at, bytes - moved_, 0);
    if (now > 0) {
      moved_ += now;
    } else if (now < 0 && errno == EAGAIN) {
      return State::kBlocked;
    } else {
      return State::kBroken;
    }
  }
  return State::kDone;
}

}  // namespace simulated_gpu
