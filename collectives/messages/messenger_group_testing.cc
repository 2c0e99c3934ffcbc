#include "collectives/messages/messenger_group_testing.h"

#include <cstdio>
#include <cstdlib>

#include "collectives/conformance/memory_key_exchange.h"
#include "collectives/conformance/rank_group.h"

namespace hvd::collectives::messages {

MessengerGroup::MessengerGroup(int size, const HostOf& host_of,
                               const std::shared_ptr<const net::TlsContext>& tls)
    : messengers_(size) {
  conformance::KeyExchangeTable keys(size);
  conformance::ForEachRank(size, [&](int rank) {
    const GroupInfo group = {Epoch(1), rank, size, "127.0.0.1", "secret", tls};
    auto connected =
        Messenger::Connect(group, *keys.ForRank(rank), absl::Seconds(60), host_of(rank));
    if (!connected.ok()) {
      std::fprintf(stderr, "%s\n", connected.status().ToString().c_str());
      std::abort();
    }
    messengers_[rank] = *std::move(connected);
  });
}

void MessengerGroup::Run(absl::FunctionRef<void(int, Messenger&)> work) {
  conformance::ForEachRank(size(), [&](int rank) { work(rank, at(rank)); });
}

absl::Status Await(Messenger& messenger, const std::shared_ptr<Transfer>& transfer) {
  while (!messenger.WaitAWhile(*transfer)) {
  }
  return transfer->status();
}

}  // namespace hvd::collectives::messages
