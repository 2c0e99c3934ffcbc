// Random operations of some ranks whose connections suffer a random fault at a random byte. Each
// operation ends in the exact numbers, or in an error that the fault explains, and only faults that
// nothing reveals end at a deadline. --gtest_random_seed=N runs other cases.
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/cancellation.h"
#include "base/net/tls_session.h"
#include "base/status_macros.h"
#include "collectives/conformance/memory_key_exchange.h"
#include "collectives/conformance/rank_group.h"
#include "collectives/tcp/faulty_proxy_testing.h"
#include "collectives/tcp/tcp_backend.h"
#include "gtest/gtest.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::collectives::tcp {
namespace {

constexpr int kCases = 60;
constexpr int kOperations = 30;
// For faults that nothing reveals.
constexpr absl::Duration kShort = absl::Milliseconds(400);
constexpr absl::Duration kLong = absl::Seconds(100);

std::shared_ptr<const net::TlsContext> NewTls() {
  const rendezvous::security::PeerCredentials issued =
      *(*rendezvous::security::JobAuthority::Create("job"))->IssueForHost("any host");
  return *net::TlsContext::Create({issued.ca_certificate, issued.certificate, issued.private_key});
}

// What a case is made of; the same on all ranks.
struct Case {
  explicit Case(unsigned seed) : random(seed) {
    ranks = Below(3) + 2;
    encrypted = Below(3) == 0;
    most_direct = Below(3) == 0 ? 1 : 16;
    splits = Below(2) == 0;
    fault.kind = static_cast<Fault::Kind>(Below(encrypted ? 7 : 6));
    // Of any order of magnitude, so that handshakes, small and large messages are all hit.
    fault.after = size_t{1} << Below(23);
    fault.after += Below(static_cast<int>(fault.after));
    struck = Below(ranks);
    if (fault.kind != Fault::kCutDialer) return;
    // A rank whose only connection is cut silently has but its deadline; and so has a peer that the
    // acceptor takes for connected already.
    if (ranks == 2 || most_direct == 1) fault.kind = Fault::kReset;
    fault.after += 64 << 10;
  }
  int Below(int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); }

  std::minstd_rand random;
  int ranks;
  bool encrypted;
  int most_direct;
  bool splits;  // nearly all messages over several connections
  Fault fault;
  int struck;  // the rank whose port is behind the proxy

  // Whether a rank may have but its deadline. One that waits for a further link does not read from
  // the others: if one of these ends behind more data than the kernel holds, only the daemon tells,
  // which this test lacks.
  bool is_silent() const {
    return fault.kind == Fault::kStall || (fault.kind == Fault::kClose && most_direct == 1);
  }
  bool changes_bytes() const { return fault.kind == Fault::kFlip; }
  bool is_harmless() const { return fault.kind == Fault::kNone || fault.kind == Fault::kDribble; }
  std::string ToString() const {
    return absl::StrCat("ranks ", ranks, ", fault ", fault.kind, " after ", fault.after,
                        " bytes at rank ", struck, ", encrypted ", encrypted, ", most direct ",
                        most_direct, ", splits ", splits);
  }
};

// Shows all ranks the proxy's address in place of the struck rank's.
class Diverted : public KeyExchange {
 public:
  Diverted(std::unique_ptr<KeyExchange> real, const Case& which, absl::Mutex& mutex,
           std::unique_ptr<FaultyProxy>& proxy)
      : real_(std::move(real)), case_(which), mutex_(mutex), proxy_(proxy) {}

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override {
    ASSIGN_OR_RETURN(std::vector<std::string> values, real_->AllGather(key, value, timeout));
    absl::MutexLock lock(&mutex_);
    if (proxy_ == nullptr) {
      proxy_ = std::make_unique<FaultyProxy>(values[case_.struck], case_.fault);
    }
    values[case_.struck] = proxy_->address();
    return values;
  }

 private:
  const std::unique_ptr<KeyExchange> real_;
  const Case& case_;
  absl::Mutex& mutex_;
  std::unique_ptr<FaultyProxy>& proxy_;
};

int64_t Number(int rank, size_t i) { return (rank + 1) * 1000003 + static_cast<int64_t>(i); }

std::vector<int64_t> Numbers(int rank, size_t count) {
  std::vector<int64_t> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = Number(rank, i);
  return numbers;
}

std::vector<int64_t> Sums(int ranks, size_t count) {
  std::vector<int64_t> sums(count);
  for (int rank = 0; rank < ranks; ++rank) {
    for (size_t i = 0; i < count; ++i) sums[i] += Number(rank, i);
  }
  return sums;
}

// One operation, which `random` chooses; checks its result.
absl::Status RunAny(Communicator& c, Case& random, const CallOptions& options) {
  const size_t ranks = static_cast<size_t>(c.size()), own = static_cast<size_t>(c.rank());
  size_t count = size_t{1} << random.Below(19);
  count += random.Below(static_cast<int>(count));
  const int operation = random.Below(6), root = random.Below(c.size());
  const std::vector<int64_t> in =
      Numbers(c.rank(), count * (operation == 2 || operation == 3 ? ranks : 1));
  const std::vector<size_t> counts(ranks, count), bytes(ranks, count * sizeof(int64_t));
  std::vector<int64_t> out, expected;
  absl::Status status;
  switch (operation) {
    case 0:
      out = in;
      expected = Sums(c.size(), count);
      status =
          c.AllReduce(out.data(), out.data(), count, DataType::kInt64, ReduceOp::kSum, options);
      break;
    case 1:
      out.resize(count * ranks);
      for (int rank = 0; rank < c.size(); ++rank) {
        const std::vector<int64_t> part = Numbers(rank, count);
        expected.insert(expected.end(), part.begin(), part.end());
      }
      status = c.AllGather(in.data(), out.data(), bytes, options);
      break;
    case 2:
      out.resize(count);
      expected = Sums(c.size(), count * ranks);
      expected = std::vector<int64_t>(expected.begin() + own * count,
                                      expected.begin() + (own + 1) * count);
      status =
          c.ReduceScatter(in.data(), out.data(), counts, DataType::kInt64, ReduceOp::kSum, options);
      break;
    case 3:
      out.resize(count * ranks);
      for (int rank = 0; rank < c.size(); ++rank) {
        const std::vector<int64_t> all = Numbers(rank, count * ranks);
        expected.insert(expected.end(), all.begin() + own * count, all.begin() + (own + 1) * count);
      }
      status = c.AllToAll(in.data(), bytes, out.data(), bytes, options);
      break;
    case 4:
      out = in;
      expected = Numbers(root, count);
      status = c.Broadcast(out.data(), count * sizeof(int64_t), root, options);
      break;
    default:
      status = c.Barrier(options);
  }
  if (!status.ok()) return status;
  EXPECT_TRUE(out == expected) << "operation " << operation << " of " << count;
  return status;
}

void ExpectExplained(const absl::Status& status, const Case& which) {
  if (status.ok()) return;
  EXPECT_FALSE(which.is_harmless()) << status;
  EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsPermissionDenied(status) ||
              (absl::IsDataLoss(status) && which.changes_bytes()) ||
              (absl::IsDeadlineExceeded(status) && which.is_silent()))
      << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "rank")) << status;
}

// `world` is what a worker has, too: when one rank fails, the others stop connecting.
absl::Status RunRank(int rank, Case which, MeshBackend& backend, KeyExchange& keys,
                     const std::shared_ptr<const net::TlsContext>& tls, Cancellation& world) {
  const absl::Duration patience = which.is_silent() ? kShort : kLong;
  const GroupInfo group = {Epoch(1), rank, which.ranks, "127.0.0.1", "secret", tls};
  const auto connected = backend.Connect(group, keys, {patience, &world});
  absl::Status status = connected.status();
  for (int i = 0; i < kOperations && status.ok(); ++i) {
    status = RunAny(**connected, which, {patience});
  }
  if (!status.ok()) world.Cancel(status);
  return status;
}

void RunCase(unsigned seed) {
  const Case which(seed);
  SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", which.ToString()));
  const std::shared_ptr<const net::TlsContext> tls = which.encrypted ? NewTls() : nullptr;
  const SplitRule rule = {.large_bytes = which.splits ? size_t{1000} : SplitRule().large_bytes,
                          .review_bytes = 10'000,
                          .always = which.splits};
  const auto backend = MakeSparseTcpBackend(which.most_direct, rule);
  conformance::KeyExchangeTable keys(which.ranks);
  absl::Mutex mutex;
  std::unique_ptr<FaultyProxy> proxy;
  std::vector<absl::Status> ends(which.ranks);
  Cancellation world;
  conformance::ForEachRank(which.ranks, [&](int rank) {
    Diverted exchange(keys.ForRank(rank), which, mutex, proxy);
    ends[rank] = RunRank(rank, which, *backend, exchange, tls, world);
  });
  for (const absl::Status& end : ends) ExpectExplained(end, which);
}

TEST(TcpFaultsTest, EveryOperation_EndsInTheNumbersOrAnError) {
  const unsigned first = static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed());
  for (unsigned i = 0; i < kCases; ++i) RunCase(first * kCases + i + 1);
}

}  // namespace
}  // namespace hvd::collectives::tcp
