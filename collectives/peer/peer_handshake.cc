#include "collectives/peer/peer_handshake.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "collectives/peer_proof.h"

namespace hvd::collectives::peer {
namespace {

// The first bytes of a connection: the purpose, with the version of the protocol that follows.
constexpr absl::string_view kNames[kPurposes] = {"hvdlink6", "hvdctrl3", "hvdlk6.1",
                                                 "hvdlk6.2", "hvdlk6.3", "hvdlk6.4",
                                                 "hvdlk6.5", "hvdlk6.6", "hvdlk6.7"};
constexpr size_t kNameBytes = 8;
constexpr size_t kGroupBytes = 4;
constexpr size_t kRankBytes = 4;
constexpr size_t kEpochBytes = 8;
constexpr size_t kDialerAt = kNameBytes + kGroupBytes + kEpochBytes + kRankBytes;
constexpr size_t kHelloBytes = kDialerAt + 2 * kRankBytes + kNonceBytes;
constexpr size_t kChallengeBytes = kNonceBytes + kProofBytes;
constexpr absl::string_view kWelcome("w", 1);

// `number` in `bytes` bytes, the most significant one first.
std::string BigEndian(uint64_t number, size_t bytes) {
  std::string text;
  while (bytes-- > 0) text.push_back(static_cast<char>(number >> (8 * bytes) & 0xff));
  return text;
}

uint64_t FromBigEndian(absl::string_view bytes) {
  uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

absl::string_view NameOf(Purpose purpose) { return kNames[static_cast<size_t>(purpose)]; }

std::optional<Purpose> PurposeOf(absl::string_view name) {
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<Purpose>(found - std::begin(kNames));
}

// Every field has a fixed length, so the acceptor knows how many bytes to read before it can trust
// any of them.
std::string Hello(Purpose purpose, const GroupInfo& group, int dialer, int acceptor,
                  absl::string_view nonce) {
  return absl::StrCat(NameOf(purpose), BigEndian(group.id, kGroupBytes),
                      BigEndian(group.epoch.value(), kEpochBytes),
                      BigEndian(group.size, kRankBytes), BigEndian(dialer, kRankBytes),
                      BigEndian(acceptor, kRankBytes), nonce);
}

// The common state of both ends. The two proofs of a handshake differ even though the ends share a
// secret: a proof covers the direction (from, to) and the nonces with the prover's first. The nonce
// of the checking end is fresh, so neither a replayed nor a reflected proof is valid.
class End : public net::peer::Handshake {
 public:
  explicit End(std::string binding) : nonce_(MakeNonce()), binding_(std::move(binding)) {}

  net::peer::PeerId peer() const override {
    return {static_cast<int>(purpose_), group_ == nullptr ? 0 : group_->id, peer_};
  }

 protected:
  void Name(Purpose purpose, const GroupInfo& group, int peer) {
    purpose_ = purpose;
    group_ = &group;
    peer_ = peer;
  }

  std::string OwnProof() const {
    const std::string transcript = absl::StrCat(nonce_, peer_nonce_);
    return MakeProof(group_->secret, Subject(group_->rank, peer_, transcript));
  }

  absl::Status CheckPeersProof(absl::string_view proof) const {
    const std::string transcript = absl::StrCat(peer_nonce_, nonce_);
    if (CheckProof(group_->secret, Subject(peer_, group_->rank, transcript), proof)) {
      return absl::OkStatus();
    }
    return absl::PermissionDeniedError(
        absl::StrCat("rank ", peer_, " does not know this epoch's secret"));
  }

  ProofSubject Subject(int from, int to, absl::string_view transcript) const {
    return {NameOf(purpose_), group_->epoch, group_->size, from, to, transcript, binding_};
  }

  Purpose purpose_ = Purpose::kTensors;
  const GroupInfo* group_ = nullptr;  // nullptr: the acceptor has not been told yet
  int peer_ = -1;
  const std::string nonce_;
  const std::string binding_;
  std::string peer_nonce_;
};

class Dialer : public End {
 public:
  Dialer(Purpose purpose, const GroupInfo& group, int peer, std::string binding)
      : End(std::move(binding)) {
    Name(purpose, group, peer);
  }

  std::string Start() override { return Hello(purpose_, *group_, group_->rank, peer_, nonce_); }

  size_t wanted() const override {
    if (done_) return 0;
    return peer_nonce_.empty() ? kChallengeBytes : kWelcome.size();
  }

  absl::StatusOr<std::string> Step(absl::string_view bytes) override {
    if (peer_nonce_.empty()) return OnChallenge(bytes);
    if (bytes != kWelcome) return absl::PermissionDeniedError("the peer has not sent a welcome");
    done_ = true;
    return std::string();
  }

 private:
  absl::StatusOr<std::string> OnChallenge(absl::string_view bytes) {
    if (bytes.size() != kChallengeBytes) {
      return absl::PermissionDeniedError("the peer's challenge has the wrong length");
    }
    peer_nonce_ = std::string(bytes.substr(0, kNonceBytes));
    // The acceptor proves itself first. The dialer sends its own proof only to a member.
    const absl::Status proved = CheckPeersProof(bytes.substr(kNonceBytes));
    if (!proved.ok()) return proved;
    return OwnProof();
  }

  bool done_ = false;
};

class Acceptor : public End {
 public:
  Acceptor(FindGroup find_group, std::string binding)
      : End(std::move(binding)), find_group_(std::move(find_group)) {}

  std::string Start() override { return ""; }

  size_t wanted() const override {
    if (done_) return 0;
    return peer_nonce_.empty() ? kHelloBytes : kProofBytes;
  }

  absl::StatusOr<std::string> Step(absl::string_view bytes) override {
    if (peer_nonce_.empty()) return OnHello(bytes);
    const absl::Status proved = CheckPeersProof(bytes);
    if (!proved.ok()) return proved;
    done_ = true;
    return std::string(kWelcome);
  }

 private:
  absl::StatusOr<std::string> OnHello(absl::string_view bytes) {
    // Purpose, group and the dialer's rank are taken from the message. Then the whole message must
    // equal the one that such a dialer sends to this rank, which checks epoch, size and both ranks
    // at once.
    const absl::Status stranger =
        absl::PermissionDeniedError("the peer is not a member of a group of this epoch");
    if (bytes.size() != kHelloBytes) return stranger;
    const std::optional<Purpose> purpose = PurposeOf(bytes.substr(0, kNameBytes));
    found_ = find_group_(static_cast<int>(FromBigEndian(bytes.substr(kNameBytes, kGroupBytes))));
    if (!purpose.has_value() || found_ == nullptr) return stranger;
    const absl::string_view nonce = bytes.substr(kHelloBytes - kNonceBytes);
    const uint64_t dialer = FromBigEndian(bytes.substr(kDialerAt, kRankBytes));
    if (dialer >= static_cast<uint64_t>(found_->size)) return stranger;
    const int claimed = static_cast<int>(dialer);
    const int own = found_->rank;
    if (claimed == own || bytes != Hello(*purpose, *found_, claimed, own, nonce)) return stranger;
    Name(*purpose, *found_, claimed);
    peer_nonce_ = std::string(nonce);
    // This tells a stranger nothing: the proof is about the stranger's nonce and this end's, and
    // only for this direction.
    return absl::StrCat(nonce_, OwnProof());
  }

  const FindGroup find_group_;
  std::shared_ptr<const GroupInfo> found_;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<net::peer::Handshake> MakeDialerHandshake(Purpose purpose, const GroupInfo& group,
                                                          int peer, std::string binding) {
  return std::make_unique<Dialer>(purpose, group, peer, std::move(binding));
}

std::unique_ptr<net::peer::Handshake> MakeAcceptorHandshake(FindGroup find_group,
                                                            std::string binding) {
  return std::make_unique<Acceptor>(std::move(find_group), std::move(binding));
}

}  // namespace hvd::collectives::peer
