#include "collectives/gloo/guarded_transport.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>  // NOLINT: Gloo's own lock
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "gloo/transport/tcp/context.h"
#include "gloo/transport/tcp/pair.h"

namespace hvd::collectives::gloo {
namespace {

namespace tcp = ::gloo::transport::tcp;

// What a TLS record holds.
constexpr size_t kRecordBytes = 16 << 10;

#if defined(__x86_64__)
// What libgloo.so.0.5.0 allocates. Our classes are laid out by headers of which one may be a
// stand-in (third_party/shims/gloo).
static_assert(sizeof(tcp::Pair) == 896, "not the tcp::Pair of libgloo.so.0.5.0");
static_assert(sizeof(tcp::Context) == 224, "not the tcp::Context of libgloo.so.0.5.0");
#endif

class GuardedPair : public tcp::Pair {
 public:
  // Gloo's constructor listens. Nobody is taken there (see handleEvents), and the door is shut
  // here at once.
  GuardedPair(tcp::Context* context, tcp::Device* device, int rank,
              std::chrono::milliseconds timeout, net::Wire connection)
      : Pair(context, device, rank, timeout), tls_(connection.TakeTls()) {
    std::lock_guard<std::mutex> lock(m_);
    // To close a socket takes it from the loop, too. unregisterDescriptor() would also wait for the
    // loop's next turn, so that no event finds a handler that is gone; this one stays, and ignores
    // an event of the listener that the loop has fetched already.
    ::close(std::exchange(fd_, connection.TakeFd().release()));
    try {
      handleConnected();
    } catch (...) {
      // The loop does not know it yet, so ~Pair() must not find it.
      ::close(std::exchange(fd_, -1));
      throw;
    }
    // Of what the session has taken from the socket already the loop is not told.
    if (tls_ != nullptr && tls_->HasBuffered()) HandleGuarded(EPOLLIN);
  }

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
    if (ex_ != nullptr || state_ != CONNECTED) return;
    HandleGuarded(events);
  }

 protected:
  // As Pair's, but through the session: as much as there is now; true if `op` is done. Gloo repeats
  // an operation that is not, and lets no other one pass, which is what TLS wants.
  bool write(tcp::Op& op) override {
    if (tls_ == nullptr) return Pair::write(op);
    ::gloo::NonOwningPtr<tcp::UnboundBuffer> buffer;
    const tcp::Op::Opcode opcode = op.getOpcode();
    if (opcode == tcp::Op::SEND_UNBOUND_BUFFER) {
      buffer = ::gloo::NonOwningPtr<tcp::UnboundBuffer>(op.ubuf);
      if (!buffer) return false;
    }
    while (op.nwritten < op.preamble.nbytes) {
      std::array<iovec, 2> parts;
      int count = 0;
      prepareWrite(op, buffer, parts.data(), count);
      std::array<char, kRecordBytes> record;
      const IoResult sent = tls_->Write(NextRecord(parts, count, record));
      // The loop reads what the peer said last, and then finds the end. It must not be told here:
      // the caller may hold a lock that the loop waits for.
      if (sent.end) shutdown(fd_, SHUT_RDWR);
      if (sent.end || sent.would_block) return false;
      op.nwritten += sent.bytes;
    }
    writeComplete(op, buffer, opcode);
    return true;
  }

  bool read() override {
    if (tls_ == nullptr) return Pair::read();
    if (state_ == CLOSED) return false;
    ::gloo::NonOwningPtr<tcp::UnboundBuffer> buffer;
    while (true) {
      iovec part = {nullptr, 0};
      const ssize_t wanted = prepareRead(rx_, buffer, part);
      if (wanted < 0) return false;
      if (wanted == 0) break;
      const IoResult got = tls_->Read(static_cast<char*>(part.iov_base), part.iov_len);
      if (got.end) signalException(FailureText());
      if (got.end || got.would_block) return false;
      rx_.nread += got.bytes;
    }
    readComplete(buffer);
    return true;
  }

 private:
  // REQUIRES: the lock is held.
  void HandleGuarded(int events) {
    try {
      handleReadWrite(events);
    } catch (const std::exception& e) {
      if (ex_ == nullptr && state_ != CLOSED) signalException(e.what());
    }
  }

  // A message's head goes with the first bytes of what follows it.
  static absl::string_view NextRecord(const std::array<iovec, 2>& parts, int count,
                                      std::array<char, kRecordBytes>& record) {
    const auto view = [](const iovec& part) {
      return absl::string_view(static_cast<const char*>(part.iov_base), part.iov_len);
    };
    if (count == 1) return view(parts[0]);
    size_t size = 0;
    for (const iovec& part : parts) {
      const absl::string_view taken = view(part).substr(0, record.size() - size);
      std::copy(taken.begin(), taken.end(), record.begin() + size);
      size += taken.size();
    }
    return absl::string_view(record.data(), size);
  }

  std::string FailureText() const {
    return tls_->unsafe() ? kUnsafe + tls_->failure() : "Connection closed by peer";
  }

  const std::unique_ptr<net::TlsSession> tls_;  // nullptr: the bytes go as they are
};

class GuardedContext : public tcp::Context {
 public:
  using tcp::Context::Context;

  void Adopt(int rank, net::Wire connection) {
    pairs_[rank] = std::make_unique<GuardedPair>(this, device_.get(), rank, getTimeout(),
                                                 std::move(connection));
  }
};

}  // namespace

std::shared_ptr<::gloo::transport::Context> MakeGuardedContext(
    std::shared_ptr<::gloo::transport::tcp::Device> device, int rank, int size) {
  return std::make_shared<GuardedContext>(std::move(device), rank, size);
}

void AdoptConnection(::gloo::transport::Context& context, int rank, net::Wire connection) {
  static_cast<GuardedContext&>(context).Adopt(rank, std::move(connection));
}

}  // namespace hvd::collectives::gloo
