// Fuzz target: handshakes between ranks, of strangers and with an attacker in between.
#include "collectives/peer/peer_handshake.h"
#include "tests/support/fuzzing.h"

namespace hvd::collectives::peer {
namespace {

using net::peer::Handshake;
GroupInfo Group(int rank) {
  GroupInfo group;
  group.rank = rank;
  group.size = 3;
  group.epoch = Epoch(7);
  group.secret = "the epoch's secret";
  return group;
}

std::shared_ptr<const GroupInfo> OnlyGroup(int id) {
  return id == 0 ? std::make_shared<GroupInfo>(Group(0)) : nullptr;
}

// Nobody who does not know the secret gets through.
void CheckStranger(Handshake& end, InputParts parts) {
  end.Start();
  while (end.wanted() > 0) {
    const auto answer = end.Step(parts.Take(end.wanted()));
    if (answer.ok()) continue;
    return RequireOneLine(answer.status());
  }
  Require(false, "a stranger has proved nothing");
}

// Changes a message; returns whether it is another one.
bool Tamper(InputParts& parts, std::string& message) {
  const uint8_t position = parts.Byte();
  const uint8_t change = parts.Byte();
  if (message.empty() || change == 0) return false;
  message[position % message.size()] ^= static_cast<char>(change);
  return true;
}

// The messages pass through an attacker's hands. An end that accepts its peer has heard from it.
void CheckTampered(InputParts parts) {
  const GroupInfo dialers = Group(1);
  const auto purpose = static_cast<Purpose>(parts.Byte() % kPurposes);
  const auto dialer = MakeDialerHandshake(purpose, dialers, 0, "binding");
  const auto acceptor = MakeAcceptorHandshake(OnlyGroup, "binding");
  bool is_changed = false;
  std::string message = dialer->Start();
  for (Handshake* end : {acceptor.get(), dialer.get(), acceptor.get(), dialer.get()}) {
    is_changed = Tamper(parts, message) || is_changed;
    const auto answer = end->Step(message);
    Require(answer.ok() || is_changed, "an honest handshake succeeds");
    if (!answer.ok()) return RequireOneLine(answer.status());
    message = *answer;
  }
  Require(acceptor->wanted() == 0 && dialer->wanted() == 0, "both ends have proved themselves");
  Require(!is_changed, "a changed handshake fails");
  Require(acceptor->peer().number == 1 && dialer->peer().number == 0, "each knows the other one");
}

}  // namespace
}  // namespace hvd::collectives::peer

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hvd::collectives::peer;
  const hvd::InputParts parts(data, size);
  CheckStranger(*MakeAcceptorHandshake(OnlyGroup), parts);
  const hvd::collectives::GroupInfo group = Group(1);
  CheckStranger(*MakeDialerHandshake(Purpose::kTensors, group, 0), parts);
  CheckTampered(parts);
  return 0;
}
