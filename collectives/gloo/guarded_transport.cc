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

// The maximum payload of a TLS record.
constexpr size_t kRecordBytes = 16 << 10;

// The classes below derive from classes of libgloo.so, so their layouts must match the library's.
// The check is needed because one of the headers may be a stand-in (third_party/shims/gloo). The
// numbers are what Context::createPair and Device::createContext of Debian's libgloo.so.0.5.0
// allocate. On aarch64 a mutex is 8 bytes larger; a Pair has three, a Context one.
#if defined(__x86_64__)
constexpr size_t kPairBytes = 896, kContextBytes = 224;
#elif defined(__aarch64__)
constexpr size_t kPairBytes = 920, kContextBytes = 232;
#else
#error "the sizes of libgloo's classes on this processor are unknown"
#endif
static_assert(sizeof(tcp::Pair) == kPairBytes, "not the tcp::Pair of libgloo.so.0.5.0");
static_assert(sizeof(tcp::Context) == kContextBytes, "not the tcp::Context of libgloo.so.0.5.0");

// A pair that starts connected, catches the exceptions of Gloo's event loop, and can use TLS.
// Gloo's lock `m_` protects the pair; the loop calls handleEvents() without it.
class GuardedPair : public tcp::Pair {
 public:
  // The base class's constructor opens a listening socket. No connection is accepted there (see
  // handleEvents), and this constructor closes it at once.
  GuardedPair(tcp::Context* context, tcp::Device* device, int rank,
              std::chrono::milliseconds timeout, net::Wire connection)
      : Pair(context, device, rank, timeout), tls_(connection.TakeTls()) {
    std::lock_guard<std::mutex> lock(m_);
    // Closing the listener also removes it from the loop's epoll set. unregisterDescriptor() is not
    // needed: it would wait for the loop's next iteration, so that no pending event reaches a
    // destroyed handler. This handler stays, and ignores an event that the loop has fetched
    // already.
    ::close(std::exchange(fd_, connection.TakeFd().release()));
    try {
      handleConnected();
    } catch (...) {
      // The socket is not in the loop yet, so ~Pair() must not try to remove it.
      ::close(std::exchange(fd_, -1));
      throw;
    }
    // The TLS session may have read more from the socket than the handshake; epoll does not report
    // that data.
    if (tls_ != nullptr && tls_->HasBuffered()) HandleGuarded(EPOLLIN);
  }

  // Closes the pair as ~Pair() would, but while this class's handleEvents() is still in place: in
  // ~Pair() the loop would call the base class's, which may throw.
  ~GuardedPair() override {
    std::lock_guard<std::mutex> lock(m_);
    if (state_ != CLOSED) changeState(CLOSED);
  }

  // Called by the loop, which must never block on the lock: the thread that holds it may wait for
  // the loop's next iteration. epoll is level-triggered, so the event comes again at once. The loop
  // yields the CPU first, so that it does not spin in place of the lock's holder. The lock is held
  // until an exception is recorded, so that no other thread sees a half-broken pair.
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
  // Like Pair's, but through the TLS session: writes as much as possible now; returns whether `op`
  // is complete. Gloo retries an incomplete operation before any other one. TLS requires that: a
  // write that would block must be repeated with the same data.
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
      // The loop then reads the peer's last data, finds the end, and signals the failure. It must
      // not be signalled here: the caller may hold a lock that the loop waits for.
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

  // The data for the next TLS record. A message's preamble and the first bytes of its payload share
  // a record, so that a small message needs one record instead of two.
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

  const std::unique_ptr<net::TlsSession> tls_;  // nullptr: no TLS
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
