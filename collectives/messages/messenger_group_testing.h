// A group of ranks that are threads of a test, with a messenger each.
#ifndef COLLECTIVES_MESSAGES_MESSENGER_GROUP_TESTING_H_
#define COLLECTIVES_MESSAGES_MESSENGER_GROUP_TESTING_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/net/tls_session.h"
#include "collectives/messages/messenger.h"

namespace hvd::collectives::messages {

// The identity of a rank's host.
using HostOf = std::function<std::string(int rank)>;
inline std::string OneHost(int) { return "host"; }
inline std::string Apart(int rank) { return std::to_string(rank); }
inline std::string Pairs(int rank) { return std::to_string(rank / 2); }

class MessengerGroup {
 public:
  // `tls` null: no encryption. Aborts the test process unless all are connected.
  MessengerGroup(int size, const HostOf& host_of,
                 const std::shared_ptr<const net::TlsContext>& tls = nullptr);

  int size() const { return static_cast<int>(messengers_.size()); }
  Messenger& at(int rank) { return *messengers_[rank]; }
  // Destroys the rank's messenger.
  void Leave(int rank) { messengers_[rank].reset(); }
  // Calls work(rank, messenger) on all ranks concurrently.
  void Run(absl::FunctionRef<void(int, Messenger&)> work);

 private:
  std::vector<std::unique_ptr<Messenger>> messengers_;
};

// Waits for the end of a transfer, and returns its status.
absl::Status Await(Messenger& messenger, const std::shared_ptr<Transfer>& transfer);

}  // namespace hvd::collectives::messages

#endif  // COLLECTIVES_MESSAGES_MESSENGER_GROUP_TESTING_H_
