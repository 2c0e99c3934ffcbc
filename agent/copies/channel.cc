#include "agent/copies/channel.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

// The proof of one end that it knows the token. It contains the role and the TLS channel binding,
// so it can't be reflected by the peer or replayed on another connection.
std::string Proof(const Trust& trust, net::TlsEnd end, const std::string& binding) {
  const char* const role = end == net::TlsEnd::kAccepts ? "source" : "keeper";
  return HmacSha256(trust.token, absl::StrCat("horovod commit ", role, binding));
}

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

Channel::Channel(Fd connection, const Trust& trust, net::TlsEnd end,
                 const Cancellation& cancellation)
    : trust_(trust),
      end_(end),
      cancellation_(cancellation),
      wire_(std::move(connection), trust.tls, end) {}

absl::Status Channel::Await(short events, absl::Duration patience) {
  // Two bounds: `patience` is for one step, so a peer could take any time for the handshake by
  // sending a byte now and then.
  const absl::Time limit = std::min(Clock::Real().Now() + patience, deadline_);
  return net::AwaitReady(wire_.fd(), events, limit, &cancellation_);
}

absl::Status Channel::Open() {
  deadline_ = Clock::Real().Now() + kPatience;
  const absl::Status opened = Authenticate();
  deadline_ = absl::InfiniteFuture();
  return opened;
}

// TLS verifies the certificates. Then the ends prove that they know the job's token, the keeper
// first: the source reveals nothing to a peer that has not proved it.
absl::Status Channel::Authenticate() {
  for (net::Opening step; (step = wire_.Open()) != net::Opening::kDone;) {
    if (step == net::Opening::kFailed) {
      return absl::PermissionDeniedError(absl::StrCat("the other end ", wire_.failure()));
    }
    RETURN_IF_ERROR(Await(step == net::Opening::kWantsToRead ? POLLIN : POLLOUT, kPatience));
  }
  RETURN_IF_ERROR(Send(Proof(trust_, end_, wire_.Binding())));
  std::string theirs(kHmacSha256Bytes, '\0');
  RETURN_IF_ERROR(Receive(theirs.data(), theirs.size()));
  return CheckProof(theirs);
}

absl::StatusOr<bool> Channel::StepOpen() {
  if (!is_open_) {
    const net::Opening step = wire_.Open();
    if (step == net::Opening::kWantsToRead) return false;
    // kWantsToWrite is a failure: the handshake's bytes are far fewer than a new socket's buffer
    // takes.
    if (step != net::Opening::kDone) {
      return absl::PermissionDeniedError(absl::StrCat("the other end ", wire_.failure()));
    }
    is_open_ = true;
  }
  while (theirs_.size() < kHmacSha256Bytes) {
    std::array<char, kHmacSha256Bytes> buffer;
    const IoResult got = wire_.Read(buffer.data(), kHmacSha256Bytes - theirs_.size());
    theirs_.append(buffer.data(), got.bytes);
    if (got.end) return absl::UnavailableError("the other end is gone");
    if (got.would_block) return false;
  }
  RETURN_IF_ERROR(CheckProof(theirs_));
  RETURN_IF_ERROR(Send(Proof(trust_, end_, wire_.Binding())));
  return true;
}

net::Strangers::Stage Channel::stage() const {
  if (is_open_) return net::Strangers::Stage::kCertified;
  return wire_.heard() ? net::Strangers::Stage::kHeard : net::Strangers::Stage::kSilent;
}

absl::Status Channel::CheckProof(absl::string_view theirs) {
  const bool accepts = end_ == net::TlsEnd::kAccepts;
  const net::TlsEnd other = accepts ? net::TlsEnd::kConnects : net::TlsEnd::kAccepts;
  if (ConstantTimeEquals(theirs, Proof(trust_, other, wire_.Binding()))) return absl::OkStatus();
  return absl::PermissionDeniedError("the other end does not belong to this job");
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
