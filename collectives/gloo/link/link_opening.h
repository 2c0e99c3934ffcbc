// One connection whose ends are just proving that they belong together.
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

// Never blocks: Advance() does what can be done now, whoever owns it waits until there is more.
// Takes no byte past the handshake's last out of the wire. Not thread-safe.
class LinkOpening {
 public:
  enum class Progress { kWantsToRead, kWantsToWrite, kProved, kFailed };

  // Is asked when the wire is open, with its binding.
  using MakeHandshake = std::function<std::unique_ptr<PeerHandshake>(std::string binding)>;

  // The wire is kept alive from now on, also when it is silent.
  LinkOpening(net::Wire wire, MakeHandshake make_handshake);

  Progress Advance();

  int fd() const { return wire_.fd(); }
  // Whom the other end is, once kProved; before it is only a claim; -1: it has not said so.
  int peer() const { return handshake_ == nullptr ? -1 : handshake_->peer(); }
  // Whether the other end has sent anything at all.
  bool heard() const { return heard_; }
  // Why it failed.   Unavailable: the other end hung up.   PermissionDenied: its proof is wrong, or
  // it has no certificate of the job.
  const absl::Status& status() const { return status_; }
  // REQUIRES: kProved. The next byte there is the first after the handshake.
  net::Wire TakeWire() { return std::move(wire_); }

 private:
  Progress OpenWire();
  Progress HungUp();
  Progress Fail(const absl::Status& why);

  net::Wire wire_;
  const MakeHandshake make_handshake_;
  std::unique_ptr<PeerHandshake> handshake_;  // nullptr until the wire is open
  std::string unsent_;
  std::string received_;  // of what the handshake wants next
  bool heard_ = false;
  absl::Status status_;
};

}  // namespace hvd::collectives::gloo::link

#endif  // COLLECTIVES_GLOO_LINK_LINK_OPENING_H_
