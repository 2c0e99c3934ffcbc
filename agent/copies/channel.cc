#include "agent/copies/channel.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/net/tcp_socket.h"
#include "base/status_macros.h"

namespace hvd::agent::copies {
namespace {

// The nice value of threads that copy commits: lower priority than the training processes.
constexpr int kNice = 5;

class TokenHandshake : public net::peer::Handshake {
 public:
  TokenHandshake(const Trust& trust, net::TlsEnd end, std::string binding)
      : trust_(trust), accepts_(end == net::TlsEnd::kAccepts), binding_(std::move(binding)) {}

  std::string Start() override { return accepts_ ? "" : Proof("keeper"); }
  size_t wanted() const override { return is_over_ ? 0 : kHmacSha256Bytes; }

  absl::StatusOr<std::string> Step(absl::string_view bytes) override {
    if (!ConstantTimeEquals(bytes, Proof(accepts_ ? "keeper" : "source"))) {
      return absl::PermissionDeniedError("the other end does not belong to this job");
    }
    is_over_ = true;
    return accepts_ ? Proof("source") : "";
  }

 private:
  // The proof of one end that it knows the token. It contains the role and the TLS channel binding,
  // so it can't be reflected by the peer or replayed on another connection.
  std::string Proof(const char* role) const {
    return HmacSha256(trust_.token, absl::StrCat("horovod commit ", role, binding_));
  }

  const Trust& trust_;
  const bool accepts_;
  const std::string binding_;
  bool is_over_ = false;
};

template <typename Number>
void Put(std::string* bytes, Number number) {
  char raw[sizeof(number)];
  // In this machine's byte order: all hosts of a job have the same, as tensors do.
  memcpy(raw, &number, sizeof(number));
  bytes->append(raw, sizeof(number));
}

template <typename Number>
Number Take(absl::string_view* bytes) {
  Number number = 0;
  if (bytes->size() < sizeof(number)) return number;
  memcpy(&number, bytes->data(), sizeof(number));
  bytes->remove_prefix(sizeof(number));
  return number;
}

}  // namespace

std::string CopyHead::Encoded() const {
  std::string bytes;
  Put(&bytes, number);
  Put(&bytes, size);
  Put(&bytes, checksum);
  return bytes;
}

CopyHead CopyHead::Decode(absl::string_view bytes) {
  CopyHead head;
  head.number = Take<uint64_t>(&bytes);
  head.size = Take<uint64_t>(&bytes);
  head.checksum = Take<uint32_t>(&bytes);
  return head;
}

std::string EncodeNumber(uint64_t number) {
  std::string bytes;
  Put(&bytes, number);
  return bytes;
}

uint64_t DecodeNumber(absl::string_view bytes) { return Take<uint64_t>(&bytes); }

std::unique_ptr<net::peer::Handshake> MakeTokenHandshake(const Trust& trust, net::TlsEnd end,
                                                         std::string binding) {
  return std::make_unique<TokenHandshake>(trust, end, std::move(binding));
}

absl::Status Channel::Await(short events, absl::Duration patience) {
  return net::AwaitReady(wire_.fd(), events, Clock::Real().Now() + patience, &cancellation_);
}

absl::Status Channel::Send(absl::string_view bytes) {
  while (!bytes.empty()) {
    RETURN_IF_ERROR(cancellation_.status());
    // In pieces, so that a cancellation is noticed soon.
    const IoResult written = wire_.Write(bytes.substr(0, 1 << 18));
    if (written.end) return absl::UnavailableError("the other end is gone");
    bytes.remove_prefix(written.bytes);
    if (written.would_block) RETURN_IF_ERROR(Await(POLLOUT, kPatience));
  }
  return absl::OkStatus();
}

absl::Status Channel::Receive(char* buffer, size_t size) {
  while (size > 0) {
    RETURN_IF_ERROR(cancellation_.status());
    const IoResult got = wire_.Read(buffer, size);
    if (got.end) return absl::UnavailableError("the other end is gone");
    buffer += got.bytes;
    size -= got.bytes;
    if (got.would_block) RETURN_IF_ERROR(Await(POLLIN, kPatience));
  }
  return absl::OkStatus();
}

absl::Status Channel::AwaitBytes(absl::Duration patience) {
  // TLS may have read the bytes from the socket already; then poll would not report them.
  return wire_.HasBuffered() ? absl::OkStatus() : Await(POLLIN, patience);
}

absl::Status Channel::Pause(absl::Duration time) {
  // The keeper says nothing while it waits for a commit, so input means that it is gone.
  const absl::Status spoken = Await(POLLIN, time);
  if (absl::IsDeadlineExceeded(spoken)) return absl::OkStatus();
  RETURN_IF_ERROR(spoken);
  return absl::UnavailableError("the other end is gone");
}

// Of the thread alone: in Linux each thread has its own nice value.
void RunInBackground() { setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice); }

}  // namespace hvd::agent::copies
