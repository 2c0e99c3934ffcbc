#include "worker_runtime/control/handshake.h"

#include "absl/strings/str_cat.h"
#include "base/crypto.h"

namespace hvd::worker_runtime::control {
namespace {

constexpr absl::string_view kMagic("hvdctl1\n", 8);
constexpr size_t kNonceBytes = 32;
constexpr size_t kProofBytes = kHmacSha256Bytes;
constexpr size_t kHelloBytes = 8 + 8 + 4 + 4 + kNonceBytes;
constexpr absl::string_view kWelcome("w", 1);

// `bytes` of `number`, most significant first.
std::string BigEndian(uint64_t number, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    text.push_back(static_cast<char>(number >> shift & 0xff));
  }
  return text;
}

uint64_t FromBigEndian(absl::string_view bytes) {
  uint64_t number = 0;
  for (char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

// The transcript is longer than any binding, and has one length: no two subjects give one text.
std::string Proof(const collectives::GroupInfo& group, absl::string_view label,
                  absl::string_view transcript, absl::string_view binding) {
  return HmacSha256(group.secret, absl::StrCat(label, transcript, binding));
}

// All of the hello but the rank and the nonce.
std::string HelloPrefix(const collectives::GroupInfo& group) {
  return absl::StrCat(kMagic, BigEndian(group.epoch.value(), 8), BigEndian(group.size, 4));
}

}  // namespace

size_t RootHandshake::wanted() const {
  if (done_) return 0;
  return transcript_.empty() ? kHelloBytes : kProofBytes;
}

absl::StatusOr<std::string> RootHandshake::Step(absl::string_view bytes) {
  return transcript_.empty() ? OnHello(bytes) : OnProof(bytes);
}

absl::StatusOr<std::string> RootHandshake::OnHello(absl::string_view hello) {
  const std::string prefix = HelloPrefix(group_);
  if (hello.size() != kHelloBytes || hello.substr(0, prefix.size()) != prefix) {
    return absl::PermissionDeniedError("a stranger, or a worker of another epoch");
  }
  const uint64_t rank = FromBigEndian(hello.substr(prefix.size(), 4));
  if (rank == 0 || rank >= static_cast<uint64_t>(group_.size)) {
    return absl::PermissionDeniedError("a rank that does not exist");
  }
  peer_rank_ = static_cast<int>(rank);
  const std::string nonce = RandomBytes(kNonceBytes);
  transcript_ = absl::StrCat(hello, nonce);
  return absl::StrCat(nonce, Proof(group_, "root", transcript_, binding_));
}

absl::StatusOr<std::string> RootHandshake::OnProof(absl::string_view proof) {
  if (!ConstantTimeEquals(proof, Proof(group_, "member", transcript_, binding_))) {
    return absl::PermissionDeniedError("a wrong proof");
  }
  done_ = true;
  return std::string(kWelcome);
}

absl::StatusOr<std::string> MemberHandshake::Start() {
  const std::string nonce = RandomBytes(kNonceBytes);
  transcript_ = absl::StrCat(HelloPrefix(group_), BigEndian(group_.rank, 4), nonce);
  return transcript_;
}

size_t MemberHandshake::wanted() const {
  if (done_) return 0;
  return challenged_ ? kWelcome.size() : kNonceBytes + kProofBytes;
}

absl::StatusOr<std::string> MemberHandshake::Step(absl::string_view bytes) {
  if (!challenged_) return OnChallenge(bytes);
  if (bytes != kWelcome) return absl::PermissionDeniedError("rank 0 does not bid us welcome");
  done_ = true;
  return std::string();
}

absl::StatusOr<std::string> MemberHandshake::OnChallenge(absl::string_view challenge) {
  if (challenge.size() != kNonceBytes + kProofBytes) {
    return absl::PermissionDeniedError("a challenge of the wrong length");
  }
  absl::StrAppend(&transcript_, challenge.substr(0, kNonceBytes));
  if (!ConstantTimeEquals(challenge.substr(kNonceBytes),
                          Proof(group_, "root", transcript_, binding_))) {
    return absl::PermissionDeniedError("what listens at rank 0's port does not know the secret");
  }
  challenged_ = true;
  return Proof(group_, "member", transcript_, binding_);
}

}  // namespace hvd::worker_runtime::control
