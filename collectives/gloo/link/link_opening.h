// The opening of a link: one connection during the handshake of its ends.
#ifndef COLLECTIVES_GLOO_LINK_LINK_OPENING_H_
#define COLLECTIVES_GLOO_LINK_LINK_OPENING_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/net/wire.h"
#include "collectives/peer_handshake.h"

namespace hvd::collectives::gloo::link {

inline constexpr absl::string_view kLinkProtocol("hvdgloo3", kProtocolBytes);

// Never blocks: Advance() does what is possible now; the owner waits for more. Reads no byte past
// the handshake's last one from the wire. Not thread-safe.
class LinkOpening {
 public:
  enum class Progress { kWantsToRead, kWantsToWrite, kProved, kFailed };

  // Called when the wire is open, with its binding.
  using MakeHandshake = std::function<std::unique_ptr<PeerHandshake>(std::string binding)>;

  // Sets keepalive on the wire from now on, also while it is silent.
  LinkOpening(net::Wire wire, MakeHandshake make_handshake);

  Progress Advance();

  int fd() const { return wire_.fd(); }
  // The rank of the other end, once kProved; before that only a claim; -1: none was sent.
  int peer() const { return handshake_ == nullptr ? -1 : handshake_->peer(); }
  // Whether the other end has sent anything at all.
  bool heard() const { return heard_; }
  // The failure:
  // Errors:
  //   - Unavailable: the other end hung up.
  //   - PermissionDenied: its proof is wrong, or it has no certificate of the job.
  const absl::Status& status() const { return status_; }
  // REQUIRES: kProved. The next byte on the wire is the first after the handshake.
  net::Wire TakeWire() { return std::move(wire_); }

 private:
  Progress OpenWire();
  Progress HungUp();
  Progress Fail(const absl::Status& why);

  net::Wire wire_;
  const MakeHandshake make_handshake_;
  std::unique_ptr<PeerHandshake> handshake_;  // nullptr until the wire is open
  std::string unsent_;
  std::string received_;  // of the handshake's next message
  bool heard_ = false;
  absl::Status status_;
};

}  // namespace hvd::collectives::gloo::link

#endif  // COLLECTIVES_GLOO_LINK_LINK_OPENING_H_
