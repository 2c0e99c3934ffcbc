#include "worker_runtime/session/agent_session.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/crypto.h"
#include "base/ids.h"
#include "rendezvous/client/grpc_rendezvous_client.h"
#include "rendezvous/security/credentials_message.h"

namespace hvd::worker_runtime::session {
namespace {

// In a rehearsal, which measures the time from a fault to the next commit.
constexpr absl::Duration kRehearsalPause = absl::Milliseconds(50);

Incarnation NewIncarnation() {
  const std::string bytes = RandomBytes(sizeof(uint64_t));
  uint64_t value;
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(&value));
  return Incarnation(value | 1);  // 0 means none
}

}  // namespace

std::shared_ptr<Session> OpenAgentSession(const pb::WorkerBootstrap& bootstrap,
                                          absl::Duration patience) {
  const rendezvous::security::PeerCredentials credentials =
      rendezvous::security::FromMessage(bootstrap.credentials());
  const WorkerStanding standing{
      WorkerId(bootstrap.worker_id()),
      bootstrap.advertise_address(),
      bootstrap.elastic(),
      absl::Milliseconds(bootstrap.reattach_ms()),
      {credentials.ca_certificate, credentials.certificate, credentials.private_key},
      bootstrap.has_fault_page() ? kRehearsalPause : WorldLease::kPause};
  rendezvous::client::Patience with_daemon =
      rendezvous::client::PatienceFor(patience, standing.reattach);
  if (bootstrap.away_ms() > 0) with_daemon.away = absl::Milliseconds(bootstrap.away_ms());
  return std::make_shared<Session>(standing, NewIncarnation(),
                                   rendezvous::client::GrpcRendezvousClients(
                                       bootstrap.daemon_address(), credentials, with_daemon));
}

}  // namespace hvd::worker_runtime::session
