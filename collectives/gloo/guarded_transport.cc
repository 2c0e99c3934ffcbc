#include "collectives/gloo/guarded_transport.h"

#include <sched.h>
#include <sys/epoll.h>

#include <exception>
#include <mutex>  // NOLINT: Gloo's own lock
#include <string>
#include <utility>

#include "gloo/transport/tcp/context.h"
#include "gloo/transport/tcp/pair.h"

namespace hvd {
namespace {

namespace tcp = gloo::transport::tcp;

#if defined(__x86_64__)
// What libgloo.so.0.5.0 allocates. Our classes are laid out by headers of which one may be a
// stand-in (third_party/shims/gloo).
static_assert(sizeof(tcp::Pair) == 896, "not the tcp::Pair of libgloo.so.0.5.0");
static_assert(sizeof(tcp::Context) == 224, "not the tcp::Context of libgloo.so.0.5.0");
#endif

class GuardedPair : public tcp::Pair {
 public:
  using tcp::Pair::Pair;

  // What ~Pair() does, while the loop still finds our handleEvents().
  ~GuardedPair() override {
    std::lock_guard<std::mutex> lock(m_);
    if (state_ != CLOSED) changeState(CLOSED);
  }

  // Called by the loop, which must never wait for the lock: its holder may be waiting for the
  // loop's next turn. The event comes again, at once: so the processor is given up, or the loop
  // would turn round and round in the place of the lock's holder. The lock is held until the
  // connection is broken, lest anyone meet it half made.
  void handleEvents(int events) override {
    std::unique_lock<std::mutex> lock(m_, std::try_to_lock);
    if (!lock) {
      sched_yield();
      return;
    }
    if (ex_ != nullptr) return;
    try {
      if (state_ == LISTENING) {
        handleListening();
      } else if (state_ == CONNECTING) {
        handleConnecting();
      } else if (state_ == CONNECTED) {
        handleReadWrite(events);
      }
    } catch (const std::exception& e) {
      BreakConnection(e.what());
    }
  }

 private:
  // REQUIRES: the lock is held.
  void BreakConnection(const std::string& why) {
    if (ex_ != nullptr || state_ == CLOSED) return;
    // Closing takes the socket out of the loop, and must find it there; one that was just accepted
    // is not there yet.
    if (fd_ >= 0) device_->registerDescriptor(fd_, EPOLLIN, this);
    signalException(why);
  }
};

class GuardedContext : public tcp::Context {
 public:
  using tcp::Context::Context;

  std::unique_ptr<gloo::transport::Pair>& createPair(int rank) override {
    pairs_[rank] = std::make_unique<GuardedPair>(this, device_.get(), rank, getTimeout());
    return pairs_[rank];
  }
};

}  // namespace

std::shared_ptr<gloo::transport::Context> MakeGuardedContext(
    std::shared_ptr<gloo::transport::tcp::Device> device, int rank, int size) {
  return std::make_shared<GuardedContext>(std::move(device), rank, size);
}

}  // namespace hvd
