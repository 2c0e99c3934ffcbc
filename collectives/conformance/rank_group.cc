#include "collectives/conformance/rank_group.h"

#include <cstdlib>
#include <thread>  // NOLINT: ranks are threads

#include "collectives/conformance/memory_key_exchange.h"
#include "gtest/gtest.h"

namespace hvd::collectives::conformance {

void ForEachRank(int size, absl::FunctionRef<void(int)> work) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&work, rank] { work(rank); });
  for (std::thread& thread : threads) thread.join();
}

std::vector<absl::Status> RankGroup::Connect(const std::vector<std::string>& secrets,
                                             absl::Duration timeout) {
  const int size = static_cast<int>(secrets.size());
  const Epoch epoch(++epoch_);
  KeyExchangeTable keys(size);
  communicators_.clear();
  communicators_.resize(size);
  std::vector<absl::Status> statuses(size);
  ForEachRank(size, [&](int rank) {
    const GroupInfo info = {epoch, rank, size, "127.0.0.1", secrets[rank]};
    auto connected = backend_->Connect(info, *keys.ForRank(rank), timeout);
    statuses[rank] = connected.status();
    if (connected.ok()) communicators_[rank] = *std::move(connected);
  });
  key_exchanges_ = keys.calls();
  shown_keys_ = keys.shown();
  return statuses;
}

void RankGroup::Connect(int size) {
  bool all_connected = true;
  for (const absl::Status& status : Connect(std::vector<std::string>(size, "secret"))) {
    EXPECT_EQ(status, absl::OkStatus());
    all_connected &= status.ok();
  }
  if (!all_connected) std::abort();  // the tests could only crash
}

void RankGroup::Run(absl::FunctionRef<void(Communicator&)> work) {
  ForEachRank(static_cast<int>(communicators_.size()), [&](int rank) { work(at(rank)); });
}

}  // namespace hvd::collectives::conformance
